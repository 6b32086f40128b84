"""The manifest: what a run is, decided before its first molecule, and how far it came."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from .presets import RunSettings
from .progress import Stats
from .smiles import InputSummary

LEVEL_KEYS = ("functional_definition", "settings", "fingerprint", "versions", "input")
"""The parts that go into every shard and every exported file."""

PACKAGES = ("pyscf-ipu", "jax", "jaxlib", "pyscf", "rdkit", "numpy", "h5py")


def describe(
    settings: RunSettings, path: Path, source: InputSummary, definition: str
) -> dict[str, Any]:
    """What is known before the first molecule, and decides whether a later run may go on here."""
    return {
        "schema": "qm1b run, version 1",
        "fingerprint": settings.fingerprint,
        "settings": settings.to_dict(),
        "functional_definition": definition,
        "input": {
            "name": path.name,
            "sha256": source.sha256,
            "lines": source.n_lines,
        },
        "unit_lines": settings.unit_lines,
        "versions": _versions(),
    }


def progress(stats: Stats) -> dict[str, Any]:
    """Counts and times so far."""
    programs = [
        {"shape": e.label, "seconds": round(e.seconds or 0.0, 2), "cached": e.cached}
        for e in stats.compiles
    ]
    return {
        "counts": {
            "lines_read": stats.lines_read,
            "molecules": stats.molecules,
            "rows": stats.rows,
            "statuses": dict(stats.statuses),
            "dropped": dict(stats.drops),
        },
        "timing": {"seconds": round(stats.seconds, 1), "programs": programs},
    }


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed as a package"
    return versions
