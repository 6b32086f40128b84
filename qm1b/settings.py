"""The settings of a run that decide its rows, and levels of theory by the names of datasets.

`RunSettings` is everything that a row depends on besides the input file. Its fingerprint goes into
the manifest and into every shard, so that shards of different settings are never mixed.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Literal, get_args

from pyscf_ipu.settings import Settings, presets
from pyscf_ipu.settings.choices import AUTO_AOS
from qm1b.rows import schema
from qm1b.rows.schema import Json

PRESETS: Mapping[str, Settings] = MappingProxyType(
    {name: Settings.preset(name) for name in presets.PRESETS}
)
"""The level of theory of each name of --preset."""

SUSPECT = "suspect"
"""Of `stability`: rows that are suspect or have a small gap are computed again, and followed."""
STABILITY = {"none": 0.0, SUSPECT: 0.0, "all": 1.0}
"""Words for `stability`, and the share of the rows that is followed at once."""

CPU = "cpu"
"""The machine of a run that asks for no simulated one: what JAX computes on."""

Multiplicities = Literal["lowest", "all"]
LOWEST, EVERY = get_args(Multiplicities)

Padding = Literal["fine", "coarse", "coarsest"]
PADDINGS = FINE, COARSE, COARSEST = get_args(Padding)
"""Words for `padding`, in the order of `RunSettings.coarse`."""

OMITTED = {
    "id_column": (None,),
    "properties": ("",),
    "padding": (None, FINE),
    "unit_rows": (None,),
    "units": (None,),
    "one_stereoisomer": (False,),
    "machine": (CPU,),
    "run_vertices": (False,),
    "open_shells": (False,),
    "multiplicities": (LOWEST,),
}
"""Settings that not every version has, and the values at which they are left out."""


@dataclass(frozen=True)
class RunSettings:
    """What decides the rows of a run, whatever the machine and the number of workers."""

    level: Settings
    """The level of theory."""
    conformers: int
    """Conformers for each molecule, or copies of each geometry."""
    seed: int = 0
    """Seed of the conformers; the same seed gives the same rows."""
    max_aos: int = 128
    """Drop molecules with more atomic orbitals (too_large)."""
    limit: int | None = None
    """Read only the first N lines."""
    keep_charged: bool = False
    """Keep ions; QM1B is neutral."""
    open_shells: bool = False
    """Keep radicals, carbenes, triplets and, with --keep-charged, radical ions; they are computed
    by unrestricted Kohn-Sham, closed shells as ever."""
    multiplicities: Multiplicities = LOWEST
    """With --open-shells: what the record states, or all unpaired electrons parallel, or an atom's
    ground state (lowest); or all multiplicities from there down to 1 or 2, for every conformer
    (all), singlets with broken symmetry if that is lower."""
    embed_timeout: float = 60.0
    """Seconds that RDKit may take for one molecule, plus 0.1 for each conformer."""
    relax: str = "none"
    """Relax RDKit's conformers: none, mmff (MMFF94, or UFF for molecules that it has no parameters
    for) or uff."""
    rattle_angstrom: float = 0.0
    """Displace every coordinate by a Gaussian step of this standard deviation, in Angstrom."""
    one_stereoisomer: bool = False
    """Where a SMILES leaves stereo open, make all conformers of the stereoisomer that RDKit chooses
    for the first one."""
    input_format: str = "auto"
    """smiles, id_smiles, table, sdf or xyz; auto: by the content, then by the name."""
    smiles_column: str | None = None
    """Column of SMILES in a table: its name, or its number if there is no header."""
    id_column: str | None = None
    """Where the ids of the molecules are: the column of a table (its name or number), the data
    field of an SDF, the key of an extended XYZ comment. If not given, the title of an SDF entry,
    what follows the SMILES on its line, or what is called id, mol_id, name and the like."""
    retry: bool = True
    """Retry what does not converge: with damping, with a level shift, by second-order steps in
    float64."""
    stability: str = "none"
    """Follow instabilities of the SCF to the lowest state: all (in every row), suspect (in those
    that are suspect or have a small gap, which are computed once more), a share of the rows from 0
    to 1, or none."""
    forces: bool = False
    """Also compute the force on every atom, -dE/dR; rows that did not converge have none."""
    properties: tuple[str, ...] = ()
    """Further columns, one or more of charges_lowdin, bond_orders (Mayer's) and quadrupole. Give
    them after the input."""
    audit: float = 0.0
    """Fraction of the rows, 0 to 1, that PySCF recomputes in float64; its numbers are stored in
    the row."""
    unit_rows: int | None = None
    """About this many rows go into one shard, as in runs of earlier versions; None for `units`."""
    units: tuple[tuple[int, int], ...] | None = None
    """Where the input is cut into work units, each of which becomes a shard: for each part of it,
    its lines and those of a unit. A run decides it by `qm1b.folder.manifest.work_units.cut`."""
    padding: Padding | None = None
    """How far numbers of atoms are rounded up, so that molecules share programs. coarse needs half
    as many programs, and coarsest one or two, for small inputs. If not given, what takes least
    time, or what the run in --out has."""

    machine: str = CPU
    """What computes: cpu, or the program of a simulated IPU, bow or gc200, which also prices each
    row; or one of these with other figures, bow:tile_clock_frequency=1.5e9,..."""
    run_vertices: bool = False
    """With a simulated IPU: compute the integrals by its vertices, too, instead of by this host."""

    @property
    def is_simulated(self) -> bool:
        """Whether the rows come from a simulated IPU."""
        return self.machine != CPU

    @property
    def stability_share(self) -> float:
        """The share of the rows whose instabilities are followed at once."""
        return STABILITY[self.stability] if self.stability in STABILITY else float(self.stability)

    @property
    def coarse(self) -> int:
        """How coarsely numbers of atoms are rounded up, 0 to 2."""
        return PADDINGS.index(self.padding or FINE)

    @property
    def unit_lines(self) -> int | tuple[tuple[int, int], ...]:
        """Input lines of every work unit, or of those of each part of the input."""
        if self.unit_rows is not None:
            return max(1, self.unit_rows // self.conformers)
        return self.units or 1

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages that the rows depend on besides those of every run."""
        kind = self.level.dispersion
        return () if kind is None else kind.packages

    def to_dict(self) -> Json:
        """Plain values, for JSON; the level's fields beside the run's.

        Those of OMITTED are left out where they change nothing, as in the runs before them.  Beside
        jk="auto" stands its rule: `jk_above_aos`, the most AOs of a shape that is not fitted.
        """
        others = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "level"}
        others["properties"] = " ".join(self.properties)
        unused = {name for name, idle in OMITTED.items() if others[name] in idle}
        level = self.level.to_dict()
        if self.level.jk == "auto":
            level["jk_above_aos"] = AUTO_AOS
        if self.units is not None:
            others["units"] = [list(part) for part in self.units]  # as JSON has it
        return level | {k: v for k, v in others.items() if k not in unused}

    @property
    def fingerprint(self) -> str:
        """Hash of all settings and of what rows mean; equal fingerprints mean mixable shards."""
        return fingerprint_of(self.to_dict())


def fingerprint_of(values: Json) -> str:
    """The fingerprint of settings as `RunSettings.to_dict` gives them."""
    text = json.dumps(values | {"schema": schema.MEANING}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def without_later(values: Json, stored: Json) -> Json:
    """Settings in the words of an earlier version: those that it lacked are left out.

    Args:
        values: as `RunSettings.to_dict` gives them.
        stored: the settings that it wrote.
    """
    usual = Settings().to_dict() | {f.name: f.default for f in fields(RunSettings)}
    return {k: v for k, v in values.items() if k in stored or k not in usual or v != usual[k]}
