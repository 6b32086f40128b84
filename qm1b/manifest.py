"""The manifest: what a run is, decided before its first molecule, and how far it came.

What is decided makes the rows: two runs that agree on it write the same rows and may share a
folder. Of the software only what is in DECISIVE changes rows; the rest is recorded, not compared.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from .inputs import InputSummary
from .presets import RunSettings
from .units import WHOLE, Share

SCHEMA = "qm1b run, version 2"

LEVEL_KEYS = ("functional_definition", "settings", "fingerprint", "versions", "input")
"""The parts that go into every shard and every exported file."""

PACKAGES = ("pyscf-ipu", "jax", "jaxlib", "pyscf", "rdkit", "numpy", "h5py")

DECISIVE = ("pyscf-ipu", "jax", "jaxlib", "pyscf", "rdkit", "numpy", "codelets")
"""Software whose version decides rows: RDKit the conformers, the others the last digits."""

Difference = tuple[str, str, str]
"""Field, value there, value here."""


def describe(
    settings: RunSettings,
    path: Path,
    source: InputSummary,
    definition: str,
    share: Share = WHOLE,
) -> dict[str, Any]:
    """What is known before the first molecule, and decides whether a later run may go on here."""
    return {
        "schema": SCHEMA,
        "fingerprint": settings.fingerprint,
        "settings": settings.to_dict(),
        "functional_definition": definition,
        "input": {
            "name": path.name,
            "sha256": source.sha256,
            "lines": source.n_lines,
            "skipped": list(source.skipped),
        },
        "unit_lines": settings.unit_lines,
        "shard": str(share),
        "versions": versions(),
    }


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[Difference]:
    """Where two manifests describe different rows, software apart; nothing if they agree."""
    return _compare(dict(_settings(there)), dict(_settings(here)))


def other_versions(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[Difference]:
    """Where the software that decides rows differs between two manifests."""
    return _compare(dict(_software(there)), dict(_software(here)))


def table(found: list[Difference]) -> str:
    """Differences as aligned lines: field, there, here."""
    lines = [("field", "there", "here"), *found]
    widths = [max(len(line[column]) for line in lines) for column in range(2)]
    return "\n".join(f"  {a:{widths[0]}}  {b:{widths[1]}}  {c}" for a, b, c in lines)


def versions() -> dict[str, str]:
    """Python, the packages that matter, and which form of the codelets computes."""
    return package_versions(PACKAGES) | {"codelets": _codelets()}


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Of Python and of these packages."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed as a package"
    return found


def _codelets() -> str:
    from pyscf_ipu.codelets.loading import library

    found = library()
    return f"native, {found.instruction_set}" if found else "portable"


def _settings(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "schema", manifest.get("schema")
    source = manifest.get("input", {})
    yield from ((f"input.{key}", value) for key, value in source.items() if key != "name")
    yield from manifest.get("settings", {}).items()
    for key in ("functional_definition", "fingerprint", "shard"):
        yield key, manifest.get(key)


def _software(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    found = manifest.get("versions", {})
    yield from ((name, found.get(name)) for name in DECISIVE)


def _compare(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[Difference]:
    found = [
        (key, _shown(there, key), _shown(here, key))
        for key in dict.fromkeys([*there, *here])
        if key not in there or key not in here or there[key] != here[key]
    ]
    # The fingerprint differs whenever a setting does, and says nothing about it.
    named = [line for line in found if line[0] != "fingerprint"]
    return named or found


def _shown(values: Mapping[str, Any], key: str) -> str:
    if key not in values:
        return "-"
    value = values[key]
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
