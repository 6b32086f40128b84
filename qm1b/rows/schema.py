"""What a row is: its fields with dtypes, units and descriptions, in HDF5 and in Parquet.

Shape legend: R rows of a shard, A atoms of a molecule, N atomic orbitals of a molecule, K cycles of
an SCF.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, UInt8

from pyscf_ipu.xc.suffixes.names import dispersion_of, mistake

VERSION = 7
"""Increased when the fields or their meaning change; 2 has Mulliken charges, 3 stability, 4 forces
of runs that wanted them, 5 atomisation energies, 6 dispersion, ids and the input's order of
atoms, 7 the cycles of runs that wanted them."""

MEANING = 4
"""The version in which what is computed last changed, on which fingerprints depend: a run of any
version since then can be resumed."""

CONVERGED = "converged"
NOT_CONVERGED = "not_converged"
ILL_CONDITIONED = "ill_conditioned"
"""AOs too nearly dependent for the precision; see `pyscf_ipu.RKSResult`."""

FREE_ATOMS = "free_atom_energies_hartree"
"""The part of a manifest with the energy of each element's free atom, by symbol."""

Json = dict[str, Any]
"""A JSON object."""

Ragged = Literal["", "atom", "orbital", "cycle"]


@dataclass(frozen=True)
class Conformer:
    """A geometry that is to become a row."""

    line: int
    smiles: str
    conformer: int
    seed: int
    charge: int
    numbers: UInt8[np.ndarray, " A"]
    positions: Float[np.ndarray, "A 3"]
    """Bohr; float32 values in a float64 array: exactly the stored positions are computed."""
    embedding: str = "etkdg"
    """The origin of the geometry: etkdg, etkdg_random or given."""
    relaxation: str = "none"
    """The force field that relaxed it."""
    id: str = ""
    """The molecule's name in the input; see `qm1b.inputs.ids`."""
    input_atom: tuple[int, ...] = ()
    """[A] Each atom's place in its record, from 0, or -1 if it is not there; empty if nobody knows,
    which is stored as -1 for every atom."""
    follow: bool = False
    """Whether its instabilities are to be followed; on its way to the engine only, not stored."""


@dataclass(frozen=True)
class Result:
    """The engine's numbers for one conformer, in Hartree and e*Bohr."""

    status: str
    n_ao: int
    energy: float = float("nan")
    homo: float = float("nan")
    lumo: float = float("nan")
    energy_std: float = float("nan")
    dipole: tuple[float, float, float] = (float("nan"), float("nan"), float("nan"))
    converged: bool = False
    cycles: int = 0
    commutator_norm: float = float("nan")
    mo_energy: tuple[float, ...] = ()
    """[N], or empty if the calculation gave none."""
    mulliken_charges: tuple[float, ...] = ()
    """[A] in e; empty if the calculation gave none, which is stored as NaN for every atom."""
    forces: tuple[tuple[float, float, float], ...] = ()
    """[A, 3] in Hartree/Bohr; empty if there are none, which is stored as NaN for every atom."""
    cycle_energy: tuple[float, ...] = ()
    """[K] of every cycle, in order; empty if nobody kept them. Likewise the next two."""
    cycle_commutator_norm: tuple[float, ...] = ()
    cycle_gap: tuple[float, ...] = ()
    attempts: str = ""
    """Every attempt as name:status:cycles; see `qm1b.engine.ladder`."""
    stable: int = -1
    """1 if no rotation of the orbitals leads to a lower energy, 0 if one does, -1 if nobody
    looked."""
    followed: int = 0
    """Lower states that were found by following an instability."""
    suspect: str = ""
    """Why the result may belong to another state; see `qm1b.rows.suspects`."""
    atomisation_energy: float = float("nan")
    """The energy minus that of the free atoms; set when the row is written."""
    jk: str = ""
    """How electron repulsion was computed: exact or ri; empty if it was not."""
    dispersion: float = float("nan")
    """The part of the energy that a dispersion correction has added; NaN without one."""
    reference_energy: float = float("nan")
    """PySCF's energy in float64, if the row was audited; likewise the next three."""
    reference_homo: float = float("nan")
    reference_lumo: float = float("nan")
    reference_dipole: tuple[float, float, float] = (float("nan"), float("nan"), float("nan"))
    reference_forces_error: float = float("nan")
    """The largest component of forces minus PySCF's, if the row was audited, in Hartree/Bohr."""
    troubles: tuple[str, ...] = ()
    """What failed beside the row: a retry, its audit. The run counts them; they are not stored."""

    @property
    def gap(self) -> float:
        """In Hartree; NaN without a LUMO, and so below no limit."""
        return self.lumo - self.homo


@dataclass(frozen=True)
class Row:
    """A conformer and its result."""

    conformer: Conformer
    result: Result

    @property
    def place(self) -> tuple[int, int]:
        """Line and conformer: its identity within a run, and its order."""
        return self.conformer.line, self.conformer.conformer


@dataclass(frozen=True)
class Drop:
    """An input line, or a part of one (`fewer_conformers`), that did not become rows."""

    line: int
    smiles: str
    reason: str
    detail: str = ""
    id: str = ""


@dataclass(frozen=True)
class Field:
    """A dataset of a shard."""

    name: str
    dtype: str
    unit: str
    text: str
    """What it holds."""
    ragged: Ragged = ""
    """Set if the field is flat over all rows: the values of row r are between `<ragged>_offset[r]`
    and `<ragged>_offset[r + 1]`."""
    width: int = 1
    """Numbers per entry: 3 for a vector."""
    earlier: int | float | str | None = None
    """The value in shards of earlier versions, which lack the field; None if all have it."""
    only_with: str = ""
    """What a run must have for its rows to have the field (see `has`); "" if all have it."""


DISPERSION = "dispersion"
"""Of `Field.only_with`: a level of theory with a dispersion correction."""
CYCLES = "history"
"""Of `Field.only_with`: the setting to keep every cycle."""

FIELDS: tuple[Field, ...] = (
    Field("line", "int64", "1", text="line number of the molecule in the input file, from 1"),
    Field("id", "str", "text", text="name of the molecule in the input, or empty", earlier=""),
    Field("smiles", "str", "text", text="canonical SMILES of the molecule, without isotope labels"),
    Field("conformer", "int32", "1", text="number of the conformer within its molecule, from 0"),
    Field(
        "seed", "int64", "1", text="RDKit seed that the molecule's conformers were embedded with"
    ),
    Field(
        "embedding", "str", "text", text="etkdg, etkdg_random (from random coordinates) or given"
    ),
    Field("relaxation", "str", "text", text="none, mmff94, uff, or these with _unfinished"),
    Field("charge", "int8", "e", text="total charge of the molecule"),
    Field("n_ao", "int32", "1", text="number of atomic orbitals of the molecule"),
    Field(
        "status",
        "str",
        "text",
        text="converged, not_converged, ill_conditioned, nan, invalid: ... or error: ...",
    ),
    Field("converged", "bool", "1", text="whether the self-consistent field converged"),
    Field("cycles", "int32", "1", text="self-consistent-field cycles done"),
    Field(
        "commutator_norm",
        "float64",
        "hartree",
        text="largest element of the commutator [F, D] at the end",
    ),
    Field("attempts", "str", "text", text="every SCF attempt as name:status:cycles, in order"),
    Field(
        "stable",
        "int8",
        "1",
        text="1 if no rotation of the orbitals lowers the energy, 0 if one does, -1 if nobody "
        "looked",
        earlier=-1,
    ),
    Field(
        "followed", "int8", "1", text="lower states found by following an instability", earlier=0
    ),
    Field(
        "suspect", "str", "text", text="empty, or why the row may be of another electronic state"
    ),
    Field("energy", "float64", "hartree", text="total energy, nuclear repulsion included"),
    Field(
        "atomisation_energy",
        "float64",
        "hartree",
        text="energy minus the neutral free atoms' energies (negative if bound); NaN if not known",
        earlier=float("nan"),
    ),
    Field(
        "dispersion",
        "float64",
        "hartree",
        text="part of the energy that a dispersion correction such as D3(BJ) has added",
        only_with=DISPERSION,
    ),
    Field(
        "jk",
        "str",
        "text",
        text="electron repulsion: exact, ri (density fitting), or empty if not computed",
        only_with="jk",
    ),
    Field("homo", "float64", "hartree", text="energy of the highest occupied orbital"),
    Field("lumo", "float64", "hartree", text="energy of the lowest unoccupied orbital"),
    Field(
        "energy_std",
        "float64",
        "hartree",
        text="standard deviation of the last five cycle energies",
    ),
    Field("dipole", "float64", "e*bohr", text="electric dipole moment", width=3),
    Field("reference_energy", "float64", "hartree", text="PySCF's energy, NaN in rows not audited"),
    Field("reference_homo", "float64", "hartree", text="PySCF's homo, NaN in rows not audited"),
    Field("reference_lumo", "float64", "hartree", text="PySCF's lumo, NaN in rows not audited"),
    Field(
        "reference_dipole",
        "float64",
        "e*bohr",
        text="PySCF's dipole, NaN in rows not audited",
        width=3,
    ),
    Field(
        "reference_forces_error",
        "float64",
        "hartree/bohr",
        text="largest component of the forces minus PySCF's, NaN in rows not audited",
        only_with="forces",
    ),
    Field("atom_offset", "int64", "1", text="[R + 1] where the atoms of each row begin"),
    Field("numbers", "uint8", "1", text="atomic numbers, heavy atoms first", ragged="atom"),
    Field(
        "input_atom",
        "int16",
        "1",
        text="place of each atom in its record of the input, from 0; -1 if added, or not known",
        ragged="atom",
        earlier=-1,
    ),
    Field("positions", "float32", "bohr", text="positions of the atoms", ragged="atom", width=3),
    Field("mulliken_charges", "float64", "e", text="Mulliken charges of the atoms", ragged="atom"),
    Field(
        "forces",
        "float64",
        "hartree/bohr",
        text="forces on the atoms, -dE/dR, NaN in rows that did not converge",
        ragged="atom",
        width=3,
        only_with="forces",
    ),
    Field(
        "orbital_offset", "int64", "1", text="[R + 1] where the orbital energies of each row begin"
    ),
    Field("mo_energy", "float64", "hartree", text="orbital energies, ascending", ragged="orbital"),
    Field(
        "cycle_offset",
        "int64",
        "1",
        text="[R + 1] where the cycles of each row begin",
        only_with=CYCLES,
    ),
    *(
        Field(
            name,
            "float64",
            "hartree",
            text=f"{what} of every cycle, in order",
            ragged="cycle",
            only_with=CYCLES,
        )
        for name, what in (
            ("cycle_energy", "total energy"),
            ("cycle_commutator_norm", "largest element of the commutator [F, D]"),
            ("cycle_gap", "lumo - homo (NaN without a lumo)"),
        )
    ),
)


def fields_of(settings: Mapping[str, object]) -> tuple[Field, ...]:
    """The fields that the rows of a run have, by its settings."""
    return tuple(f for f in FIELDS if has(settings, f.only_with))


def has(settings: Mapping[str, object], what: str) -> bool:
    """Whether a run of these settings has something: DISPERSION, or a setting that is on.

    Every run has "".
    """
    if what != DISPERSION:
        return not what or bool(settings.get(what))
    name = str(settings.get("xc", ""))
    return not mistake(name) and dispersion_of(name) is not None


DROP_FIELDS: tuple[Field, ...] = (
    Field("line", "int64", "1", text="line number in the input file, from 1"),
    Field("smiles", "str", "text", text="the SMILES as it stood there, shortened if very long"),
    Field("reason", "str", "text", text="reason code"),
    Field("detail", "str", "text", text="what exactly was wrong"),
    Field("id", "str", "text", text="name of the molecule in the input, or empty", earlier=""),
)

DROP_REASONS: dict[str, str] = {
    "empty": "the line holds no SMILES",
    "too_long": "the line is longer than any molecule that could be computed",
    "unparsable": "it cannot be read: syntax, valence, or a value that is not allowed",
    "unsupported_element": "an element that the basis or the engine does not support",
    "ghost": "a ghost or dummy atom, which has functions but no nucleus",
    "ambiguous": "a label or a comment that may mean several things",
    "multi_fragment": "more than one molecule (a salt or a mixture)",
    "too_large": "more atomic orbitals than --max-aos, or than fit into this machine's memory",
    "radical": "unpaired electrons",
    "charged": "not neutral, and --keep-charged was not given or the charge exceeds 8 e",
    "odd_electrons": "an odd number of electrons",
    "duplicate": "the same molecule, or the same geometry of it, is on an earlier line",
    "no_geometry": "an SDF entry that is a flat drawing",
    "missing_hydrogens": "the geometry lacks hydrogens that its bonds or SMILES ask for",
    "invalid_geometry": "atoms too close, or a coordinate that is not a number or too large",
    "mismatch": "the given charge or SMILES does not fit the atoms",
    "periodic": "a periodic system",
    "no_parameters": "--relax was given, and no force field has parameters for the molecule",
    "rattle_failed": "--rattle-angstrom brought atoms too close in every try",
    "embed_failed": "RDKit found no conformer",
    "embed_timeout": "RDKit took longer than the time limit",
    "embed_crash": "the RDKit process died on this molecule in every try, two of them alone",
    "fewer_conformers": "only some of the conformers asked for were found; those are in the data",
    "invalid": "the engine cannot compute this molecule",
}

RETRIABLE = ("embed_crash", "embed_timeout", "too_large")
"""Reasons that also depend on the machine: another try may end otherwise (--retry-dropped)."""
