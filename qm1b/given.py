"""Records that bring their own geometry: SDF entries and XYZ frames.

They pass the same filters as a SMILES, and some more: what the record says of its bonds, hydrogens
and charge must agree with its atoms.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .geometry import Geometry, geometry
from .inputs import xyz
from .inputs.records import Record, smiles_of
from .smiles import SHOWN, Dropped, canonical, graph_of

if TYPE_CHECKING:
    from .smiles import Screen

MAX_COORDINATE_ANGSTROM = 100.0
"""Positions are stored and computed in float32: farther out, their digits no longer suffice."""

_CHARGE_FIELD = re.compile(r"^>[^\n]*<charge>[^\n]*\n([^\n]*)", re.IGNORECASE | re.MULTILINE)

Given = tuple[Geometry, str, int]
"""Geometry, canonical SMILES ('' if not known) and charge."""


def read(record: Record, screen: Screen) -> Given:
    """The molecule of a record.

    Raises:
        Dropped: it cannot be read, or does not pass.
    """
    from rdkit import rdBase

    with rdBase.BlockLogs():
        given = {"sdf": _sdf, "xyz": _xyz}[record.format](record.block, screen)
    _check_positions(given[0], given[2])
    return given


def _sdf(block: str, screen: Screen) -> Given:
    from rdkit import Chem

    try:
        graph = Chem.MolFromMolBlock(block, sanitize=False, removeHs=False)
    except RuntimeError as error:
        raise Dropped("unparsable", f"not a mol block: {str(error)[:SHOWN]}") from None
    if graph is None or not graph.GetNumAtoms():
        raise Dropped("unparsable", "not a mol block with atoms")
    screen.check_atoms(graph)
    if not graph.GetNumConformers() or not graph.GetConformer().Is3D():
        raise Dropped("no_geometry", "a flat drawing: neither marked 3D nor with any z")
    problems = Chem.DetectChemistryProblems(graph)
    if problems:
        raise Dropped("unparsable", problems[0].Message()[:SHOWN])
    Chem.SanitizeMol(graph)
    _check_hydrogens(sum(atom.GetTotalNumHs() for atom in graph.GetAtoms()))
    Chem.AssignStereochemistryFrom3D(graph)
    charge = screen.check_electrons(graph)
    field = _CHARGE_FIELD.search(block)
    if field is not None:
        _check_charges(_charge(field.group(1)), charge, "the atoms")
    numbers = np.array([atom.GetAtomicNum() for atom in graph.GetAtoms()], dtype=np.int64)
    found = geometry(numbers, np.asarray(graph.GetConformer().GetPositions(), dtype=float))
    return found, canonical(graph), charge


def _xyz(block: str, screen: Screen) -> Given:
    try:
        frame = xyz.parse(block)
    except xyz.Unreadable as error:
        raise Dropped("unparsable", str(error)) from None
    _check_keys(frame.keys)
    screen.check_size(frame.numbers.tolist())
    given = _charge(frame.keys["charge"]) if "charge" in frame.keys else None
    if not frame.keys.get("smiles"):
        charge = given or 0
        screen.check_closed_shell(frame.numbers.tolist(), charge)
        identity = _bonds(frame)
        return geometry(frame.numbers, frame.positions_angstrom, identity), "", charge
    graph = graph_of(smiles_of(frame.keys["smiles"]), screen)
    charge = screen.check_electrons(graph)
    if given is not None:
        _check_charges(given, charge, "the SMILES")
    _check_formula(frame, graph)
    return geometry(frame.numbers, frame.positions_angstrom), canonical(graph), charge


def _check_keys(keys: dict[str, str]) -> None:
    """What a frame says that cannot be computed."""
    periodic = keys.get("pbc", "T T T" if "lattice" in keys else "")
    if any(word[:1] in "Tt1" for word in periodic.replace(",", " ").split()):
        raise Dropped("periodic", "pbc or a lattice; only molecules are computed")
    multiplicity = keys.get("multiplicity", "1")
    if multiplicity not in ("1", "1.0"):
        raise Dropped("radical", f"multiplicity {multiplicity[:SHOWN]}; only closed shells")


def _check_formula(frame: xyz.Frame, graph: Any) -> None:
    """The SMILES and the atoms of a frame must be of one molecule."""
    theirs = Counter(atom.GetAtomicNum() for atom in graph.GetAtoms())
    theirs[1] += sum(atom.GetTotalNumHs() for atom in graph.GetAtoms())
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


def _check_positions(found: Geometry, charge: int) -> None:
    from pyscf_ipu.errors import InvalidMolecule
    from pyscf_ipu.molecule import Molecule
    from pyscf_ipu.units import BOHR_TO_ANGSTROM

    try:
        Molecule(found.numbers, found.positions, charge).check()
    except InvalidMolecule as error:
        raise Dropped("invalid_geometry", str(error)) from None
    farthest = float(np.abs(found.positions).max()) * BOHR_TO_ANGSTROM
    if farthest > MAX_COORDINATE_ANGSTROM:
        what = f"a coordinate of {farthest:.0f} Angstrom; {MAX_COORDINATE_ANGSTROM:.0f} at most"
        raise Dropped("invalid_geometry", f"{what}: move the molecule to the origin")


def _charge(text: str) -> int:
    try:
        value = float(text)
        if value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise Dropped("unparsable", f"charge {text.strip()[:40]!r}: a whole number is needed")


def _bonds(frame: xyz.Frame) -> str:
    """A name for the molecule of a frame without SMILES: its bonds, as far as distances tell."""
    from rdkit import Chem
    from rdkit.Chem import rdDetermineBonds

    if not np.isfinite(frame.positions_angstrom).all():
        raise Dropped("invalid_geometry", "a coordinate is not a finite number")
    graph = Chem.RWMol()
    for number in frame.numbers.tolist():
        atom = Chem.Atom(number)
        atom.SetNoImplicit(True)
        graph.AddAtom(atom)
    conformer = Chem.Conformer(len(frame.numbers))
    for i, (x, y, z) in enumerate(frame.positions_angstrom.tolist()):
        conformer.SetAtomPosition(i, (x, y, z))
    graph.AddConformer(conformer)
    rdDetermineBonds.DetermineConnectivity(graph)
    for atom in graph.GetAtoms():
        atom.SetNumRadicalElectrons(0)
        atom.SetFormalCharge(0)
    return f"bonds {Chem.MolToSmiles(graph)}"
