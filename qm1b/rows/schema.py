"""What a row is: its fields with dtypes, units and descriptions, in HDF5 and in Parquet.

A field stands once, in `Conformer` or `Row`: `FIELDS`, the columns of files and what is taken
from the engine's results follow from it.

Shape legend: R rows of a shard, A atoms of a molecule, N atomic orbitals of a molecule, K cycles of
an SCF.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache, partial
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, UInt8

from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.xc.suffixes.names import dispersion_of, mistake

VERSION = 10
"""Increased when the fields or their meaning change; 2 has Mulliken charges, 3 stability, 4 forces
of runs that wanted them, 5 atomisation energies, 6 dispersion, ids and the input's order of
atoms, 7 the cycles of runs that wanted them, 8 stereo and bonds of the positions, 9 net force and
torque beside forces, and properties of runs that wanted them, 10 spins of runs with open shells."""

MEANING = 4
"""The version in which what is computed last changed, on which fingerprints depend: a run of any
version since then can be resumed."""

CONVERGED = "converged"
NOT_CONVERGED = "not_converged"
TOO_LARGE = "too_large"
"""The reason of a drop, and the status with which a worker says so of its conformers."""
ILL_CONDITIONED = "ill_conditioned"
"""AOs too nearly dependent for the precision; see `pyscf_ipu.RKSResult`."""

FREE_ATOMS = "free_atom_energies_hartree"
"""The part of a manifest with the energy of each element's free atom, by symbol."""

DISPERSION = "dispersion"
"""A value of `Field.only_with`: a level of theory with a dispersion correction."""
CYCLES = "history"
"""A value of `Field.only_with`: the setting to keep every cycle."""

SIMULATED = "machine"
"""A value of `Field.only_with`: the setting that names a simulated machine."""

OPEN_SHELLS = "open_shells"
"""A value of `Field.only_with`: the setting that keeps open shells."""

PROPERTIES = ("charges_lowdin", "bond_orders", "quadrupole")
"""Values of `Field.only_with`: what the setting `properties` may name."""
CHARGES_LOWDIN, BOND_ORDERS, QUADRUPOLE = PROPERTIES

Json = dict[str, Any]
"""A JSON object."""

Ragged = Literal["", "atom", "pair", "orbital", "cycle"]
"""A pair is two atoms in order, the first of them slower: [A, A] of each row, flat."""


@dataclass(frozen=True)
class Column:
    """How the ordinary columns of a Parquet file hold a field; "" is as the field has it."""

    text: str = ""
    """What it holds."""
    unit: str = ""
    dtype: str = ""
    name: str = ""

    def of(self, field: "Field") -> "Field":
        """The column of a field."""
        return replace(field, **{name: value for name, value in vars(self).items() if value})


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
    shape: tuple[int, ...] = ()
    """Of an entry: (3,) for a vector."""
    earlier: int | float | str | None = None
    """The value in shards of earlier versions, which lack the field; None if all have it."""
    only_with: str = ""
    """What a run must have for its rows to have the field (see `has`); "" if all have it."""
    column: Column | None = None
    """Its Parquet column; None if only exact files have it."""

    @property
    def width(self) -> int:
        """Numbers per entry: 3 for a vector."""
        return math.prod(self.shape)


def stored(dtype: str, unit: str, text: str, default: object = MISSING, **more: object) -> Any:
    """A field of a dataclass that files store.

    Args:
        dtype: in HDF5.
        unit: "1" for a number without, "text" for text.
        text: what it holds.
        default: of the dataclass.
        **more: further fields of `Field`; without `column`, the Parquet column is like the field.
    """
    entry = replace(Field("", dtype, unit, text=text, column=Column()), **more)
    return field(default=default, metadata={"stored": entry})


@cache
def stored_fields(of: type) -> tuple[Field, ...]:
    """The stored fields of a class, in order."""
    each = (f for f in fields(of) if "stored" in f.metadata)
    return tuple(replace(f.metadata["stored"], name=f.name) for f in each)


NAN = float("nan")
FLOAT = "float32"
_text = partial(stored, "str", "text")
_count = partial(stored, "int32", "1")
_energy = partial(stored, "float64", "hartree", default=NAN)
NO_VECTOR = (NAN, NAN, NAN)
_vector = partial(stored, "float64", default=NO_VECTOR, shape=(3,))
_balance = partial(_vector, earlier=NAN, only_with="forces")
_vectors = partial(stored, ragged="atom", shape=(3,))
_price = partial(stored, "float64", "1", default=NAN, only_with=SIMULATED)
_cycle = partial(_energy, default=(), ragged="cycle", only_with=CYCLES)


@dataclass(frozen=True, kw_only=True)
class Conformer:
    """A geometry that is to become a row."""

    line: int = stored("int64", "1", "line number of the molecule in the input file, from 1")
    id: str = _text("name of the molecule in the input, or empty", default="", earlier="")
    """How it is found: `qm1b.inputs.ids`."""
    smiles: str = _text(
        "canonical SMILES of the molecule, without isotope labels",
        column=Column("canonical SMILES", name="smile"),
    )
    isomer_smiles: str = _text(
        "canonical SMILES with the stereo of the positions, or empty", default="", earlier=""
    )
    """Empty if the bonds are not known: `qm1b.conformers.isomers`."""
    conformer: int = _count("number of the conformer within its molecule, from 0")
    seed: int = stored(
        "int64",
        "1",
        "RDKit seed that the molecule's conformers were embedded with",
        column=Column("RDKit seed of the molecule's conformers"),
    )
    embedding: str = _text(
        "etkdg, etkdg_random (from random coordinates) or given",
        default="etkdg",
        column=Column("etkdg, etkdg_random or given"),
    )
    relaxation: str = _text(
        "none, mmff94, uff, or these with _unfinished",
        default="none",
        column=Column("force field that relaxed the geometry, or none"),
    )
    torn: bool = stored(
        "bool", "1", "whether the positions have other bonds", default=False, earlier=False
    )
    """Than the molecule: `qm1b.conformers.torn`."""
    charge: int = stored("int8", "e", "total charge of the molecule", column=Column("total charge"))
    multiplicity: int = stored(
        "int8", "1", "multiplicity 2S + 1 of the molecule",
        default=1, earlier=1, only_with=OPEN_SHELLS,
    )  # fmt: skip
    numbers: UInt8[np.ndarray, " A"] = stored(  # noqa: RUF009
        "uint8",
        "1",
        "atomic numbers, heavy atoms first",
        ragged="atom",
        column=Column("atomic numbers, in the order of atoms", name="z"),
    )
    input_atom: tuple[int, ...] = stored(
        "int16",
        "1",
        "place of each atom in its record of the input, from 0; -1 if added, or not known",
        default=(),
        ragged="atom",
        earlier=-1,
    )
    """[A], or empty if nobody knows, which is stored as -1 for every atom."""
    positions: Float[np.ndarray, "A 3"] = _vectors(  # noqa: RUF009
        "float32",
        "bohr",
        "positions of the atoms",
        column=Column("positions x, y, z, flat, in the order of atoms", name="pos"),
    )
    """Bohr; float32 values in a float64 array: exactly the stored positions are computed."""
    follow: bool = False
    """Whether its instabilities are to be followed; on its way to the engine only, not stored."""
    open_shell: bool = False
    """Whether the calculation is unrestricted; likewise."""

    def molecule(self) -> Molecule:
        """What the engine computes."""
        return Molecule(
            self.numbers,
            self.positions,
            self.charge,
            smiles=self.smiles,
            multiplicity=self.multiplicity,
        )


@dataclass(frozen=True, kw_only=True)
class Row:
    """A conformer and the engine's numbers for it, in Hartree and e*Bohr."""

    conformer: Conformer
    n_ao: int = _count(
        "number of atomic orbitals of the molecule",
        column=Column("number of atomic orbitals", dtype="uint8", name="N"),
    )
    status: str = _text(
        "converged, not_converged, fractional, ill_conditioned, nan, invalid: ... or error: ...",
        column=Column("how the calculation ended"),
    )
    converged: bool = stored(
        "bool", "1", "whether the self-consistent field converged", default=False
    )
    cycles: int = _count(
        "self-consistent-field cycles done",
        default=0,
        column=Column("self-consistent-field cycles"),
    )
    commutator_norm: float = _energy(
        "largest element of the commutator [F, D] at the end",
        column=Column("largest element of the last commutator [F, D]", dtype=FLOAT),
    )
    attempts: str = _text("every SCF attempt as name:status:cycles, in order", default="")
    """How they are made: `qm1b.engine.ladder`."""
    stable: int = stored(
        "int8",
        "1",
        "1 if no rotation of the orbitals lowers the energy, 0 if one does, -1 if nobody looked",
        default=-1,
        earlier=-1,
        column=Column("1: no rotation of the orbitals lowers the energy, 0, -1: unknown"),
    )
    followed: int = stored(
        "int8", "1", "lower states found by following an instability", default=0, earlier=0
    )
    suspect: str = _text(
        "empty, or why the row may be of another electronic state",
        default="",
        column=Column("empty, or why it may be of another electronic state"),
    )
    """How it is judged: `qm1b.rows.suspects`."""
    energy: float = _energy(
        "total energy, nuclear repulsion included", column=Column("total energy", "eV")
    )
    atomisation_energy: float = _energy(
        "energy minus the neutral free atoms' energies (negative if bound); NaN if not known",
        earlier=NAN,
        column=Column(unit="eV"),
    )
    """Set when the row is written."""
    dispersion: float = _energy(
        "part of the energy that a dispersion correction such as D3(BJ) has added",
        only_with=DISPERSION,
        column=Column("part of the energy that a dispersion correction has added", "eV"),
    )
    jk: str = _text(
        "electron repulsion: exact, ri (density fitting), or empty if not computed",
        default="",
        only_with="jk",
    )
    homo: float = _energy("energy of the highest occupied orbital", column=Column("", "eV", FLOAT))
    lumo: float = _energy("energy of the lowest unoccupied orbital", column=Column("", "eV", FLOAT))
    s_squared: float = stored(
        "float64", "1", "<S^2> of the determinant, 0 if restricted",
        default=0.0, earlier=0.0, only_with=OPEN_SHELLS,
    )  # fmt: skip
    energy_std: float = _energy(
        "standard deviation of the last five cycle energies",
        column=Column("", "eV", FLOAT),
    )
    dipole: tuple[float, float, float] = _vector(
        "e*bohr",
        "electric dipole moment",
        column=Column("electric dipole moment x, y, z", dtype=FLOAT),
    )
    reference_energy: float = _energy("PySCF's energy, NaN in rows not audited", column=None)
    reference_homo: float = _energy("PySCF's homo, NaN in rows not audited", column=None)
    reference_lumo: float = _energy("PySCF's lumo, NaN in rows not audited", column=None)
    reference_dipole: tuple[float, float, float] = _vector(
        "e*bohr", "PySCF's dipole, NaN in rows not audited", column=None
    )
    reference_forces_error: float = stored(
        "float64",
        "hartree/bohr",
        "largest component of the forces minus PySCF's, NaN in rows not audited",
        default=NAN,
        only_with="forces",
        column=None,
    )
    quadrupole: tuple[tuple[float, float, float], ...] = stored(
        "float64", "e*bohr^2",
        "second moments of the charge about the origin of the positions, not traceless",
        default=(NO_VECTOR,) * 3, shape=(3, 3), only_with=QUADRUPOLE,
        column=Column("second moments of the charge xx, xy, xz, yx, ..., zz, not traceless"),
    )  # fmt: skip
    net_force: tuple[float, float, float] = _balance(
        "hartree/bohr",
        "sum of the forces, zero but for errors; NaN in rows that did not converge",
        column=Column("sum of the forces, zero but for errors", "eV/angstrom", FLOAT),
    )
    torque: tuple[float, float, float] = _balance(
        "hartree",
        "moment of the forces about the mean position, zero but for errors; NaN likewise",
        column=Column("moment of the forces about the mean position", "eV", FLOAT),
    )
    """Both are set when the row is written, or read from a file that lacks them."""
    ipu_cycles_low: float = _price("cycles of the row's run on the simulated IPU, perfect code")
    ipu_cycles_high: float = _price("cycles of the row's run on the simulated IPU, compiled code")
    ipu_fullest_tile_bytes: int = stored(
        "int64",
        "1",
        "memory of the fullest tile of the simulated IPU, -1 if not computed",
        default=-1,
        only_with=SIMULATED,
    )
    mulliken_charges: tuple[float, ...] = stored(
        "float64",
        "e",
        "Mulliken charges of the atoms",
        default=(),
        ragged="atom",
        column=Column("Mulliken charges, in the order of atoms", dtype=FLOAT),
    )
    """[A], or empty if there are none, which is stored as NaN for every atom; likewise the next."""
    charges_lowdin: tuple[float, ...] = stored(
        "float64", "e", "Löwdin charges of the atoms",
        default=(), ragged="atom", only_with=CHARGES_LOWDIN,
        column=Column("Löwdin charges, in the order of atoms", dtype=FLOAT),
    )  # fmt: skip
    spin_populations: tuple[float, ...] = stored(
        "float64", "1", "Mulliken's alpha less beta electrons of the atoms, 0 if restricted",
        default=(), ragged="atom", earlier=0.0, only_with=OPEN_SHELLS,
        column=Column("alpha less beta electrons by Mulliken, in the order of atoms"),
    )  # fmt: skip
    forces: tuple[tuple[float, float, float], ...] = _vectors(
        "float64",
        "hartree/bohr",
        "forces on the atoms, -dE/dR, NaN in rows that did not converge",
        default=(),
        only_with="forces",
        column=Column("forces x, y, z, flat, in the order of atoms", "eV/angstrom", FLOAT),
    )
    bond_orders: tuple[tuple[float, ...], ...] = stored(
        "float64", "1", "Mayer bond orders of all pairs of atoms, zero on the diagonal",
        default=(), ragged="pair", only_with=BOND_ORDERS,
        column=Column("Mayer bond orders [A, A], flat, in the order of atoms"),
    )  # fmt: skip
    """[A, A], or empty if there are none."""
    mo_energy: tuple[float, ...] = _energy(
        "orbital energies, ascending; unrestricted: of alpha, then of beta",
        default=(),
        ragged="orbital",
        column=None,
    )
    """[N], or empty if the calculation gave none."""
    cycle_energy: tuple[float, ...] = _cycle(
        "total energy of every cycle, in order", column=Column(unit="eV")
    )
    """[K], or empty if nobody kept them; likewise the next two."""
    cycle_commutator_norm: tuple[float, ...] = _cycle(
        "largest element of the commutator [F, D] of every cycle, in order",
        column=Column("largest element of the commutator [F, D] of every cycle"),
    )
    cycle_gap: tuple[float, ...] = _cycle(
        "lumo - homo (NaN without a lumo) of every cycle, in order",
        column=Column("lumo - homo of every cycle, NaN without a LUMO", "eV", FLOAT),
    )
    troubles: tuple[str, ...] = ()
    """What failed beside the row: a retry, its audit. The run counts them; they are not stored."""

    @property
    def gap(self) -> float:
        """In Hartree; NaN without a LUMO, and so below no limit."""
        return self.lumo - self.homo

    @property
    def place(self) -> tuple[int, int]:
        """Line and conformer: its identity within a run, and its order."""
        return self.conformer.line, self.conformer.conformer


@dataclass(frozen=True)
class Drop:
    """An input line, or a part of one (`fewer_conformers`), that did not become rows."""

    line: int = stored("int64", "1", "line number in the input file, from 1")
    smiles: str = _text("the SMILES as it stood there, shortened if very long")
    reason: str = _text("reason code")
    detail: str = _text("what exactly was wrong", default="")
    id: str = _text("name of the molecule in the input, or empty", default="", earlier="")


def _fields() -> Iterator[Field]:
    """The fields of rows: first those with a value per row, then the ragged ones of each kind."""
    every = [*stored_fields(Conformer), *stored_fields(Row)]
    yield from (f for f in every if not f.ragged)
    values = {"atom": "atoms", "pair": "pairs of atoms"}
    values |= {"orbital": "orbital energies", "cycle": "cycles"}
    for kind, what in values.items():
        text = f"[R + 1] where the {what} of each row begin"
        only_with = {"cycle": CYCLES, "pair": BOND_ORDERS}.get(kind, "")
        yield Field(f"{kind}_offset", "int64", "1", text=text, only_with=only_with)
        yield from (f for f in every if f.ragged == kind)


FIELDS: tuple[Field, ...] = tuple(_fields())
DROP_FIELDS: tuple[Field, ...] = stored_fields(Drop)


def fields_of(settings: Mapping[str, object]) -> tuple[Field, ...]:
    """The fields that the rows of a run have, by its settings."""
    return tuple(f for f in FIELDS if has(settings, f.only_with))


def has(settings: Mapping[str, object], what: str) -> bool:
    """Whether a run of these settings has DISPERSION, a property, or a setting that is on.

    Every run has "".
    """
    if what in PROPERTIES:
        return what in str(settings.get("properties", "")).split()
    if what != DISPERSION:
        return not what or bool(settings.get(what))
    name = str(settings.get("xc", ""))
    return not mistake(name) and dispersion_of(name) is not None


DROP_REASONS: dict[str, str] = {
    "empty": "the line holds no SMILES",
    "too_long": "the line is longer than any molecule that could be computed",
    "unparsable": "it cannot be read: syntax, valence, or a value that is not allowed",
    "unsupported_element": "an element that the basis or the engine does not support",
    "ghost": "a ghost or dummy atom, which has functions but no nucleus",
    "ambiguous": "a label or a comment that may mean several things",
    "multi_fragment": "more than one molecule (a salt or a mixture)",
    TOO_LARGE: "more atomic orbitals than --max-aos, or than fit into the memory of the machine",
    "radical": "unpaired electrons, and --open-shells was not given",
    "charged": "not neutral, and --keep-charged was not given or the charge exceeds 8 e",
    "odd_electrons": "electrons that do not go with the multiplicity, which is 1 without "
    "--open-shells",
    "duplicate": "the same molecule, or the same geometry of it, is on an earlier line",
    "no_geometry": "an SDF entry that is a flat drawing",
    "missing_hydrogens": "the geometry lacks hydrogens that its bonds or SMILES ask for",
    "invalid_geometry": "atoms too close, or a coordinate that is not a number or too large",
    "mismatch": "the given charge or SMILES does not fit the atoms",
    "periodic": "a periodic system",
    "no_parameters": "--relax was given, and no force field has parameters for the molecule",
    "rattle_failed": "--rattle-angstrom brought atoms too close in every try",
    "embed_failed": "RDKit found no conformer; the detail says if the stereo is impossible",
    "embed_timeout": "RDKit took longer than the time limit",
    "embed_crash": "the RDKit process died on this molecule in every try, two of them alone",
    "fewer_conformers": "only some of the conformers asked for were found; those are in the data",
    "invalid": "the engine cannot compute this molecule",
}

RETRIABLE = ("embed_crash", "embed_timeout", TOO_LARGE)
"""Reasons that also depend on the machine: another try may end otherwise (--retry-dropped)."""
