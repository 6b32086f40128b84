"""Levels of theory with a name, and the settings of a run that decide its rows.

`RunSettings` is everything that a row depends on besides the input file. Its fingerprint goes into
the manifest and into every shard, so that shards of different settings are never mixed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from . import schema


@dataclass(frozen=True)
class Level:
    """What is solved for each conformer; the fields are those of `pyscf_ipu.settings.Settings`."""

    basis: str
    xc: str
    grid_level: int
    precision: str
    cart: bool = False
    max_cycles: int = 50


PRESETS: dict[str, Level] = {
    # B3LYP with VWN5, as PySCF 2.2.1 defined `b3lyp` when QM1B was made.
    "qm1b": Level(basis="sto-3g", xc="b3lyp5", grid_level=0, precision="float32"),
}


@dataclass(frozen=True)
class RunSettings:
    """What decides the rows of a run, whatever the machine and the number of workers."""

    level: Level
    conformers: int
    """Conformers asked for, per molecule."""
    seed: int
    max_aos: int
    """Molecules with more atomic orbitals are dropped as too_large."""
    limit: int | None = None
    """Input lines read; None for all."""
    keep_charged: bool = False
    """Keep closed-shell ions (QM1B is neutral)."""
    embed_timeout: float = 60.0
    """Seconds of wall clock that one molecule may spend in RDKit."""
    relax: str = "none"
    """Force field that relaxes RDKit's conformers: none, mmff or uff."""
    rattle_angstrom: float = 0.0
    """Standard deviation of a random step of every coordinate; 0 for none."""
    input_format: str = "auto"
    """smiles, table, sdf or xyz; auto to see it from content and name."""
    smiles_column: str | None = None
    """Column of a table, by name or number; None to find it by name."""
    retry: bool = True
    """Try again, in other ways, what does not converge (`qm1b.ladder`)."""
    audit: float = 0.0
    """Part of the rows that PySCF computes again (`qm1b.auditing`)."""
    unit_rows: int = 1024
    """About this many rows go into one shard; decides where the input is cut into work units."""

    @property
    def unit_lines(self) -> int:
        """Input lines of one work unit. Shard k holds lines k * unit_lines + 1 onwards."""
        return max(1, self.unit_rows // self.conformers)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; the level's fields beside the run's."""
        values = asdict(self)
        return values.pop("level") | values

    @property
    def fingerprint(self) -> str:
        """Hash of all settings and the schema version; equal fingerprints mean mixable shards."""
        values = self.to_dict() | {"schema": schema.VERSION}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]
