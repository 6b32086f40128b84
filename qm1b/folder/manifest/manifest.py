"""The manifest: what a run is, decided before its first molecule, and how far it has come.

What is decided determines the rows: two runs that agree on it write the same rows and may share a
folder. Of the software only what is in DECISIVE changes rows; the rest is recorded, not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import NamedTuple

from pyscf_ipu.base.terminal import text_table
from pyscf_ipu.settings import Settings
from qm1b.errors import UserError
from qm1b.folder.manifest import manifest_schema
from qm1b.folder.manifest.manifest_schema import LEVEL_KEYS, MEND, SCHEMA
from qm1b.folder.manifest.tally import Tally
from qm1b.folder.manifest.versions import versions
from qm1b.folder.manifest.work_units import WHOLE, Cut, Share, WorkPlan
from qm1b.inputs import InputSummary
from qm1b.rows.schema import Json
from qm1b.settings import RunSettings, fingerprint_of, without_later

DECISIVE = (
    *("pyscf-ipu", "sources", "jax", "jaxlib", "pyscf", "rdkit", "numpy", "codelets"),
    *("dftd3", "dftd4", "machine"),
)
"""Software whose version decides rows: RDKit the conformers, `sources` (the hash of this project's
code, which runs of earlier versions lack) anything, the others the last digits.  dftd3 and dftd4
are named only where they compute a dispersion correction, and the figures of the machine only where
it is a simulated one."""

Difference = tuple[str, str, str]
"""Field, value there, value here."""


class Missing(NamedTuple):
    """Units that are not there: how many, and which, as there may be too many for a list."""

    count: int
    units: Iterator[int]


@dataclass(frozen=True)
class InputRecord:
    """The input of a run."""

    name: str = ""
    """File name; it may differ between the parts of a run."""
    sha256: str = ""
    """Hash of the unpacked bytes."""
    lines: int = 0
    skipped: list[str] = field(default_factory=list)
    """Members of an archive that are not read."""


@dataclass(frozen=True)
class Manifest:
    """What a run is, and how far it has come. Fields that a file lacks keep their defaults."""

    schema: str = SCHEMA
    fingerprint: str = ""
    settings: Json = field(default_factory=dict)
    """As `RunSettings.to_dict` gives them; an earlier version may have fewer."""
    functional_definition: str = ""
    input: InputRecord = field(default_factory=InputRecord)
    unit_lines: int | Cut = 1
    """Input lines of one work unit; where its size changes, of those of each part of the input."""
    shard: str = str(WHOLE)
    """The share of the work units, as "i/n"."""
    versions: Mapping[str, str] = field(default_factory=dict)
    free_atom_energies_hartree: Mapping[str, float] = field(default_factory=dict)
    """Of each element that the run may meet, by symbol; empty in a run of an earlier version."""
    status: str = ""
    """COMPLETE, RUNNING, interrupted or failed; "" before the run has begun."""
    counts: Tally = field(default_factory=Tally)
    """What the folder holds."""
    runs: list[Json] = field(default_factory=list)
    """A record for each run that worked in the folder."""

    @classmethod
    def of(
        cls,
        settings: RunSettings,
        path: Path,
        source: InputSummary,
        definition: str,
        share: Share = WHOLE,
    ) -> Manifest:
        """What is known before the first molecule, and decides whether a later run may resume."""
        return cls(
            schema=SCHEMA,
            fingerprint=settings.fingerprint,
            settings=settings.to_dict(),
            functional_definition=definition,
            input=InputRecord(
                path.name, source.sha256, source.n_lines, skipped=list(source.skipped)
            ),
            unit_lines=settings.unit_lines,
            shard=str(share),
            versions=versions(settings.packages, settings.machine),
        )

    @classmethod
    def from_dict(cls, values: Json) -> Manifest:
        """A manifest that was read.

        Raises:
            UserError: a part of it is not what a run writes.
        """
        manifest_schema.check(values)
        known = {f.name: values[f.name] for f in fields(cls) if f.name in values}
        if "input" in known:
            names = [f.name for f in fields(InputRecord)]
            known["input"] = InputRecord(**{k: v for k, v in known["input"].items() if k in names})
        if isinstance(known.get("unit_lines"), list):
            known["unit_lines"] = tuple(map(tuple, known["unit_lines"]))
        if "counts" in known:
            known["counts"] = Tally.from_dict(known["counts"])
        return cls(**known)

    def to_dict(self) -> Json:
        """Plain values in the order of the file."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "runs"}
        seconds = sum(run.get("seconds", 0.0) for run in self.runs)
        return values | {
            "input": asdict(self.input),
            "counts": self.counts.to_dict(),
            "timing": {"seconds": round(seconds, 1)},
            "runs": self.runs,
        }

    def in_words_of(self, stored: Json) -> Manifest:
        """Describe the run as an earlier version does, whose settings are `stored`."""
        settings = without_later(self.settings, stored)
        return replace(self, settings=settings, fingerprint=fingerprint_of(settings))

    @property
    def level(self) -> Settings:
        """The level of theory; raises UserError if the manifest lacks it."""
        if lacking := [name for name in manifest_schema.LEVEL_OF_ALL if name not in self.settings]:
            raise UserError(f"the manifest is damaged: settings lack {', '.join(lacking)}. {MEND}")
        names = [f.name for f in fields(Settings) if f.name in self.settings]
        return Settings.from_dict({name: self.settings[name] for name in names})

    @property
    def plan(self) -> WorkPlan:
        """The work units that the run, or its share, ends with."""
        n_lines = min(self.input.lines, self.settings.get("limit") or self.input.lines)
        return WorkPlan(n_lines, self.unit_lines, Share.parse(self.shard))

    def missing(self, there: Iterable[int]) -> Missing:
        """Units that a complete run has, and that are not there."""
        units = self.plan.units
        kept_units = {unit for unit in there if unit in units}
        return Missing(
            len(units) - len(kept_units), (unit for unit in units if unit not in kept_units)
        )


def shard_attributes(manifest: Json, unit: int) -> Json:
    """What the shard of a unit says of its run."""
    level = {key: manifest[key] for key in LEVEL_KEYS}
    return level | manifest["settings"] | {"unit": unit}


def contradiction(manifest: Manifest, unit: int, attributes: Json, lines: Iterable[int]) -> str:
    """Where a manifest says something else than a shard of its folder.

    Versions may differ between the shards of a run, and so may the name of the input.

    Args:
        manifest: the manifest.
        unit: the shard's unit.
        attributes: the attributes of the shard.
        lines: the input lines in it.

    Returns:
        What the one and the other say, or "" if they agree.
    """
    read = {key: json.loads(attributes[key]) for key in ("settings", "input") if key in attributes}
    there = {
        key: attributes[key]
        for key in ("functional_definition", "fingerprint")
        if key in attributes
    }
    there |= read.get("settings", {})
    there |= {f"input.{k}": v for k, v in read.get("input", {}).items() if k != "name"}
    decided = _decided(manifest)
    known = {*there, *(manifest.settings if "settings" in read else ())}
    for key, here, other in _compare({k: v for k, v in decided.items() if k in known}, there):
        return f"{key} is {here}, but the shard says {other}"
    if unit not in manifest.plan.units:
        return f"shard is {manifest.shard} of {manifest.plan.n_lines} lines, which has no such unit"
    for line in lines:
        if manifest.plan.unit_of(line) != unit:
            return f"unit_lines is {manifest.unit_lines}, but the shard holds line {line}"
    return ""


def differences(there: Manifest, here: Manifest) -> list[Difference]:
    """Where two manifests describe different rows, software apart; nothing if they agree."""
    return _compare(_decided(there), _decided(here))


def both(attributes: Json, here: Mapping[str, str]) -> dict[str, str]:
    """The versions of a shard that takes in rows of this software: both where they differ."""
    there = json.loads(attributes.get("versions", "{}"))
    versions = dict(here)
    for name, version in here.items():
        before = there.get(name, "not recorded" if name in DECISIVE else version)
        if before != version:
            versions[name] = f"{before}, then {version}"
    return versions


def other_versions(there: Mapping[str, str], here: Mapping[str, str]) -> list[Difference]:
    """Where the versions of the software that decides rows differ."""
    return _compare(*({k: each[k] for k in DECISIVE if k in each} for each in (there, here)))


def table(lines: list[Difference]) -> str:
    """Differences as aligned lines: field, there, here."""
    return "\n".join(text_table([("field", "there", "here"), *lines], "< < <", "  ", indent="  "))


def _decided(manifest: Manifest) -> dict[str, object]:
    values = asdict(manifest.input)
    return {
        "schema": manifest.schema,
        **{f"input.{key}": value for key, value in values.items() if key != "name"},
        **manifest.settings,
        "functional_definition": manifest.functional_definition,
        "fingerprint": manifest.fingerprint,
        "shard": manifest.shard,
    }


def _compare(there: Mapping[str, object], here: Mapping[str, object]) -> list[Difference]:
    lines = [
        (key, _shown(there, key), _shown(here, key))
        for key in dict.fromkeys([*there, *here])
        if key not in there or key not in here or there[key] != here[key]
    ]
    # The fingerprint differs whenever a setting does, and says nothing about it.
    named = [line for line in lines if line[0] != "fingerprint"]
    return named or lines


def _shown(values: Mapping[str, object], key: str) -> str:
    if key not in values:
        return "-"
    value = values[key]
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
