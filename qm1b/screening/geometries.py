"""Records with a geometry: SDF entries and XYZ frames.

They must pass the filters of a SMILES and some more: bonds, hydrogens and charge as the record
gives them must agree with its atoms. A atoms.
"""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt8
from rdkit import Chem, rdBase

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.molecule.files import sdf
from pyscf_ipu.molecule.files.stated import Refused
from pyscf_ipu.molecule.files.wrong_unit import Mistake, mistaken_unit
from pyscf_ipu.molecule.files.xyz import Frame, comment_keys, parse_frame
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.molecule.smiles import heavy_first
from qm1b.inputs.records import Record, smiles_of
from qm1b.rows.identity import bonds_of
from qm1b.screening.graphs import canonical, check_chemistry, parsed
from qm1b.screening.limits import CLOSED, SHOWN, Dropped, Electrons, Limits, hydrogens

MAX_COORDINATE_ANGSTROM = 100.0
"""Positions are stored and computed in float32, whose digits no longer suffice farther out."""


@dataclass(frozen=True, eq=False)
class Geometry:
    """Atoms in space, heavy atoms first."""

    numbers: UInt8[np.ndarray, " A"]
    positions: Float[np.ndarray, "A 3"]
    """Bohr, float64 array of float32 values."""
    input_atom: tuple[int, ...] = ()
    """[A] Place of each atom in its record, from 0."""
    identity: str = ""
    """Replaces the SMILES if there is none."""


class Given(NamedTuple):
    """The molecule of a record with a geometry."""

    geometry: Geometry
    smiles: str
    """Canonical; "" if not known."""
    electrons: Electrons
    pair: str = ""
    """The comment, if its two integers were read as charge and multiplicity of an ion."""


def read(record: Record, limits: Limits) -> Given:
    """The molecule of a record.

    Raises:
        Dropped: it cannot be read, or does not pass.
    """
    with rdBase.BlockLogs():
        try:
            given = {"sdf": _sdf, "xyz": _xyz}[record.format](record.block, limits)
            _check_positions(given.geometry, given.electrons)
        except (Refused, Dropped) as problem:
            is_ours = isinstance(problem, Dropped)
            dropped = problem if is_ours else Dropped(problem.reason, str(problem))
            dropped.smiles = _smiles_of_dropped(record)
            raise dropped from None
    return given


def looks_like(geometry: Geometry) -> Mistake:
    """The unit that the positions seem to be in, although they were read in another; "" if none."""
    return mistaken_unit(geometry.numbers.astype(int), geometry.positions * BOHR_TO_ANGSTROM)


def rounded(positions: Float[np.ndarray, "A 3"]) -> Float[np.ndarray, "A 3"]:
    """Positions as they are stored and computed: float32 values in a float64 array."""
    with np.errstate(over="ignore"):
        return positions.astype(np.float32).astype(np.float64)


def _smiles_of_dropped(record: Record) -> str:
    """The identity of a record that does not pass, with all its faults; "" if it cannot be read.

    The one of an SDF entry is made from its bonds, that of a frame is what its comment says.
    """
    if record.format == "xyz":
        keys = comment_keys(record.block.split("\n", 2)[1])
        return next((value for key, value in keys.items() if key.lower() == "smiles"), "")
    try:
        graph = Chem.MolFromMolBlock(record.block, sanitize=False, removeHs=False)
        return "" if graph is None else Chem.MolToSmiles(Chem.RemoveHs(graph, sanitize=False))
    except (RuntimeError, ValueError):
        return ""


def _geometry(
    numbers: Int[np.ndarray, " A"], angstrom: Float[np.ndarray, "A 3"], identity: str = ""
) -> Geometry:
    """A geometry from atoms in any order and positions in Angstrom."""
    order = heavy_first(numbers)
    positions = rounded(angstrom[order] / BOHR_TO_ANGSTROM)
    return Geometry(
        numbers[order].astype(np.uint8), positions, tuple(order.tolist()), identity=identity
    )


def _sdf(block: str, limits: Limits) -> Given:
    try:
        graph = Chem.MolFromMolBlock(block, sanitize=False, removeHs=False)
    except RuntimeError as error:
        raise Dropped("unparsable", f"not a mol block: {str(error)[:SHOWN]}") from None
    if graph is None or not graph.GetNumAtoms():
        raise Dropped("unparsable", "not a mol block with atoms")
    limits.check_atoms(graph)
    if not graph.GetNumConformers() or not graph.GetConformer().Is3D():
        raise Dropped("no_geometry", "a flat drawing: neither marked 3D nor with any z")
    check_chemistry(graph)
    Chem.SanitizeMol(graph)
    _check_hydrogens(hydrogens(graph))
    Chem.AssignStereochemistryFrom3D(graph)
    stated = sdf.stated_charge(block, limits.open_shells)
    electrons = limits.check_electrons(graph, sdf.stated_multiplicity(block))
    if stated is not None:
        _check_charges(stated, electrons.charge, "the atoms")
    numbers = np.array([atom.GetAtomicNum() for atom in graph.GetAtoms()], dtype=np.int64)
    geometry = _geometry(numbers, np.asarray(graph.GetConformer().GetPositions(), dtype=float))
    return Given(geometry, canonical(graph)[0], electrons)


def _xyz(block: str, limits: Limits) -> Given:
    frame = parse_frame(block)
    frame.check(limits.open_shells)
    given, spin = frame.charge, frame.multiplicity
    limits.check_size(frame.numbers.tolist())
    if not frame.keys.get("smiles"):
        electrons = limits.check_spin(frame.numbers.tolist(), given or 0, multiplicity=spin)
        if not np.isfinite(frame.positions_angstrom).all():
            raise Dropped("invalid_geometry", "a coordinate is not a finite number")
        identity = bonds_of(frame.numbers, frame.positions_angstrom)
        geometry = _geometry(frame.numbers, frame.positions_angstrom, identity)
        return Given(geometry, "", electrons, pair=frame.pair)
    _, graph = parsed(smiles_of(frame.keys["smiles"]), limits)
    electrons = limits.check_electrons(graph, spin)
    if given is not None:
        _check_charges(given, electrons.charge, "the SMILES")
    _check_formula(frame, graph)
    geometry = _geometry(frame.numbers, frame.positions_angstrom)
    return Given(geometry, canonical(graph)[0], electrons, pair=frame.pair)


def _check_formula(frame: Frame, graph: Chem.Mol) -> None:
    """The SMILES and the atoms of a frame must have the same formula."""
    theirs = Counter(atom.GetAtomicNum() for atom in graph.GetAtoms())
    theirs[1] += hydrogens(graph)
    ours = Counter(frame.numbers.tolist())
    missing = theirs - ours
    if set(missing) == {1} and not ours - theirs:
        _check_hydrogens(missing[1])
    if missing or ours - theirs:
        raise Dropped("mismatch", "the SMILES has other atoms than the geometry")


def _check_hydrogens(missing: int) -> None:
    if missing:
        raise Dropped("missing_hydrogens", f"{missing} hydrogens have no position")


def _check_charges(given: int, charge: int, of: str) -> None:
    if given != charge:
        raise Dropped("mismatch", f"charge {given:+d} is given, {of} have {charge:+d}")


def _check_positions(geometry: Geometry, electrons: Electrons) -> None:
    charge, (multiplicity, *_) = electrons
    molecule = Molecule(geometry.numbers, geometry.positions, charge, multiplicity=multiplicity)
    try:
        molecule.check(open_shell=electrons.multiplicities != CLOSED)
    except InvalidMolecule as error:
        raise Dropped("invalid_geometry", str(error)) from None
    farthest = float(np.abs(geometry.positions).max()) * BOHR_TO_ANGSTROM
    if farthest > MAX_COORDINATE_ANGSTROM:
        what = f"a coordinate of {farthest:.0f} Angstrom; {MAX_COORDINATE_ANGSTROM:.0f} at most"
        raise Dropped("invalid_geometry", f"{what}: move the molecule to the origin")
