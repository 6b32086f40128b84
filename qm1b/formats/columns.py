"""The columns of a Parquet file: their Arrow types, and the field that each one holds."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pyscf_ipu.base.units import FORCE_TO_EV_PER_ANGSTROM, HARTREE_TO_EV
from qm1b.folder.manifest.manifest_schema import LEVEL_KEYS
from qm1b.rows.batch import OFFSETS, unit_name
from qm1b.rows.schema import DISPERSION, FREE_ATOMS, Field, Json, fields_of, has


@dataclass(frozen=True)
class Column:
    """A column of the Parquet export; `arrow` is its Arrow type."""

    name: str
    arrow: str
    unit: str
    text: str
    """What it holds."""
    only_with: str = ""
    """As of a `Field`."""


# QM1B's own columns, in its order and with its types, then ours.
COLUMNS: tuple[Column, ...] = (
    Column("smile", "string", "text", text="canonical SMILES"),
    Column("atoms", "string", "text", text="element symbols, heavy atoms first"),
    Column("z", "list<uint8>", "1", text="atomic numbers, in the order of atoms"),
    Column("energy", "double", "eV", text="total energy"),
    Column("homo", "float", "eV", text="energy of the highest occupied orbital"),
    Column("lumo", "float", "eV", text="energy of the lowest unoccupied orbital"),
    Column("N", "uint8", "1", text="number of atomic orbitals"),
    Column("std", "float", "eV", text="standard deviation of the last five cycle energies"),
    Column("y", "double", "eV", text="gap, lumo - homo"),
    Column("pos", "list<float>", "bohr", text="positions x, y, z, flat, in the order of atoms"),
    Column("status", "string", "text", text="how the calculation ended"),
    Column("converged", "bool", "1", text="whether the self-consistent field converged"),
    Column("cycles", "int32", "1", text="self-consistent-field cycles"),
    Column(
        "commutator_norm", "float", "hartree", text="largest element of the last commutator [F, D]"
    ),
    Column("dipole", "list<float>", "e*bohr", text="electric dipole moment x, y, z"),
    Column("mulliken_charges", "list<float>", "e", text="Mulliken charges, in the order of atoms"),
    Column("conformer", "int32", "1", text="number of the conformer within its molecule, from 0"),
    Column("seed", "int64", "1", text="RDKit seed of the molecule's conformers"),
    Column("embedding", "string", "text", text="etkdg, etkdg_random or given"),
    Column("relaxation", "string", "text", text="force field that relaxed the geometry, or none"),
    Column("attempts", "string", "text", text="every SCF attempt as name:status:cycles, in order"),
    Column(
        "stable",
        "int8",
        "1",
        text="1: no rotation of the orbitals lowers the energy, 0, -1: unknown",
    ),
    Column("followed", "int8", "1", text="lower states found by following an instability"),
    Column("suspect", "string", "text", text="empty, or why it may be of another electronic state"),
    Column("line", "int64", "1", text="line number of the molecule in the input file, from 1"),
    Column("id", "string", "text", text="name of the molecule in the input, or empty"),
    Column(
        "input_atom",
        "list<int16>",
        "1",
        text="place of each atom in its record of the input, from 0; -1 if added, or not known",
    ),
    Column("charge", "int8", "e", text="total charge"),
    Column(
        "atomisation_energy",
        "double",
        "eV",
        text="energy minus the neutral free atoms' energies (negative if bound); NaN if not known",
    ),
    Column(
        "dispersion",
        "double",
        "eV",
        text="part of the energy that a dispersion correction has added",
        only_with=DISPERSION,
    ),
    Column(
        "jk",
        "string",
        "text",
        text="electron repulsion: exact, ri (density fitting), or empty if not computed",
        only_with="jk",
    ),
    Column(
        "forces",
        "list<float>",
        "eV/angstrom",
        text="forces x, y, z, flat, in the order of atoms",
        only_with="forces",
    ),
    Column(
        "cycle_energy",
        "list<double>",
        "eV",
        text="total energy of every cycle, in order",
        only_with="history",
    ),
    Column(
        "cycle_commutator_norm",
        "list<double>",
        "hartree",
        text="largest element of the commutator [F, D] of every cycle",
        only_with="history",
    ),
    Column(
        "cycle_gap",
        "list<float>",
        "eV",
        text="lumo - homo of every cycle, NaN without a LUMO",
        only_with="history",
    ),
)

RENAMED = {"smiles": "smile", "numbers": "z", "positions": "pos", "n_ao": "N"}
"""Fields that QM1B's columns hold without loss, under these other names."""


class Converted(NamedTuple):
    """A column with the values of a field in another unit."""

    column: str
    factor: float
    """Of the field's values."""


CONVERTED = {
    "energy": Converted("energy", HARTREE_TO_EV),
    "atomisation_energy": Converted("atomisation_energy", HARTREE_TO_EV),
    "dispersion": Converted("dispersion", HARTREE_TO_EV),
    "homo": Converted("homo", HARTREE_TO_EV),
    "lumo": Converted("lumo", HARTREE_TO_EV),
    "energy_std": Converted("std", HARTREE_TO_EV),
    "forces": Converted("forces", FORCE_TO_EV_PER_ANGSTROM),
    "cycle_energy": Converted("cycle_energy", HARTREE_TO_EV),
    "cycle_gap": Converted("cycle_gap", HARTREE_TO_EV),
}
"""Fields that a file without exact columns has only in eV, or eV/Angstrom."""


def arrow_schema(manifest: Json, exact: bool = False) -> pa.Schema:
    """The Arrow schema: QM1B's columns and types, units and the level of theory as metadata.

    N is uint8, as in QM1B, unless the run allowed molecules of more than 255 orbitals.
    """
    settings = manifest["settings"]
    columns = [c for c in COLUMNS if has(settings, c.only_with)]
    found = [(c.name, _type_named(c.arrow), c) for c in columns]
    found += [(name, arrow_type(f), f) for f, name in exact_columns(fields_of(settings)) if exact]
    fields = [
        pa.field(name, arrow, metadata={"unit": of.unit, "description": of.text})
        for name, arrow, of in found
    ]
    if settings["max_aos"] > np.iinfo(np.uint8).max:
        fields = [f.with_type(pa.uint16()) if f.name == "N" else f for f in fields]
    metadata = {key: _text(manifest[key]) for key in LEVEL_KEYS}
    metadata[FREE_ATOMS] = json.dumps(manifest.get(FREE_ATOMS, {}))
    if exact:
        metadata["manifest"] = json.dumps(manifest)
    metadata["units"] = json.dumps({f.name: f.metadata[b"unit"].decode() for f in fields})
    metadata["hartree_to_ev"] = str(HARTREE_TO_EV)
    return pa.schema(fields, metadata=metadata)


def exact_columns(fields: Iterable[Field]) -> list[tuple[Field, str]]:
    """Those that the ordinary columns do not hold bit for bit, with the names of their columns."""
    ordinary = {(c.name, c.unit, _type_named(c.arrow)) for c in COLUMNS}
    return [
        (f, unit_name(f))
        for f in fields
        if f.name not in (*OFFSETS, *RENAMED) and (f.name, f.unit, arrow_type(f)) not in ordinary
    ]


def arrow_type(field: Field) -> pa.DataType:
    """The Arrow type that holds a field without loss."""
    one = pa.string() if field.dtype == "str" else pa.from_numpy_dtype(np.dtype(field.dtype))
    return pa.list_(one) if field.ragged or field.width > 1 else one


def _type_named(name: str) -> pa.DataType:
    inner = name.removeprefix("list<").removesuffix(">")
    return pa.type_for_alias(name) if inner == name else pa.list_(pa.type_for_alias(inner))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
