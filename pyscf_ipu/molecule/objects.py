"""What a molecule is made of, from objects of PySCF, ASE and RDKit; RDKit's graph of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.elements.spellings import symbol_of
from pyscf_ipu.molecule.checks import whole_charge
from pyscf_ipu.molecule.files.stated import (
    MOMENT_ROUNDING,
    MOMENTS,
    charge_of,
    multiplicity_of,
)

if TYPE_CHECKING:
    from ase import Atoms
    from pyscf.gto import Mole
    from rdkit.Chem import Mol

CHARGE_ROUNDING = 0.1
"""Partial charges, which files round, may miss the total charge by less than this many e."""

CLOSEST = 0.5
"""Atoms of two fragments are no closer than this, in units of the sum of covalent radii."""


class Parts(NamedTuple):
    """Atomic numbers [A], positions [A, 3] in Bohr, the charge in e, and names if there are any."""

    numbers: Int[np.ndarray, " A"]
    positions: Float[np.ndarray, "A 3"]
    charge: int
    name: str = ""
    smiles: str = ""
    multiplicity: int = 1


def parts_of_pyscf(mole: Mole) -> Parts:
    """Read the parts for `Molecule.from_pyscf`."""
    from pyscf import gto
    from pyscf.data.elements import charge as atomic_number

    if not isinstance(mole, gto.Mole):
        raise TypeError(f"a pyscf.gto.Mole is needed, not a {type(mole).__name__}.")
    if mole.nelectron != mole.tot_electrons():
        raise InvalidMolecule(
            f"the PySCF Mole has nelectron={mole.nelectron}, while its nuclei and charge="
            f"{mole.charge} make {mole.tot_electrons()} electrons: give charge= instead"
        )
    # Not mole.atom_charges(): those are smaller than the atomic numbers under an ECP.
    numbers = [atomic_number(mole.atom_symbol(i)) for i in range(mole.natm)]
    spin = 1 + abs(int(mole.spin or 0))
    return Parts(np.array(numbers, int), mole.atom_coords(), mole.charge, multiplicity=spin)


def parts_of_ase(atoms: Atoms, charge: int | None = None) -> Parts:
    """Read the parts for `Molecule.from_ase`."""
    needed = ("pbc", "numbers", "positions", "info", "get_initial_charges")
    if not all(hasattr(atoms, name) for name in needed):
        raise TypeError(f"an ase.Atoms is needed, not a {type(atoms).__name__}.")
    if np.any(atoms.pbc):
        raise InvalidMolecule(
            "the ASE Atoms are periodic: only molecules are computed; set `atoms.pbc = False` if "
            "the cell has no meaning."
        )
    moment = float(np.sum(atoms.get_initial_magnetic_moments()))
    unpaired = round(abs(moment))
    if abs(abs(moment) - unpaired) > MOMENT_ROUNDING:
        raise InvalidMolecule(
            f"the initial magnetic moments of the ASE Atoms {atoms.get_chemical_formula()} add up "
            f"to {moment:.3g}: the number of unpaired electrons must be whole; set others, or "
            "remove them with `atoms.set_initial_magnetic_moments(None)`."
        )
    keys = {str(key).lower(): str(value) for key, value in atoms.info.items()}
    spin = multiplicity_of({key: keys[key] for key in keys if key not in MOMENTS})
    if spin is not None and unpaired and spin != unpaired + 1:
        raise InvalidMolecule(
            f"the ASE Atoms {atoms.get_chemical_formula()} state the multiplicity {spin} in "
            f"`info`, and their initial magnetic moments add up to {unpaired} unpaired electrons: "
            "remove one of both"
        )
    stated = charge_of(keys)
    if charge is None:
        charge = stated or 0
    charge = whole_charge(charge)
    if stated not in (None, charge):
        raise InvalidMolecule(
            f"the ASE Atoms {atoms.get_chemical_formula()} state the charge {stated:+d} in `info`, "
            f"which contradicts charge={charge}: give charge={stated}, or remove it there."
        )
    charges = atoms.get_initial_charges()
    if np.any(charges) and not abs(charges.sum() - charge) < CHARGE_ROUNDING:
        raise InvalidMolecule(
            f"the initial charges of the ASE Atoms {atoms.get_chemical_formula()} add up to "
            f"{charges.sum():+.3g}, which contradicts charge={charge}: give the charge as "
            "charge=, or remove them with `atoms.set_initial_charges(None)`."
        )
    bohr = np.asarray(atoms.positions) / BOHR_TO_ANGSTROM
    return Parts(np.asarray(atoms.numbers), bohr, charge, multiplicity=spin or unpaired + 1)


def parts_of_rdkit(graph: Mol, conformer: int = -1, name: str = "") -> Parts:
    """Read the parts for `Molecule.from_rdkit`."""
    from rdkit import Chem, rdBase

    if not isinstance(graph, Chem.Mol):
        raise TypeError(f"an RDKit molecule is needed, not a {type(graph).__name__}.")
    with rdBase.BlockLogs():
        smiles = Chem.MolToSmiles(Chem.RemoveHs(graph))
    label = f"the RDKit molecule {name or smiles}"
    if any(atom.GetNumImplicitHs() or atom.GetNumExplicitHs() for atom in graph.GetAtoms()):
        raise InvalidMolecule(
            f"{label} has hydrogens that are not atoms: add them with Chem.AddHs(graph, "
            "addCoords=True)"
        )
    unpaired = sum(atom.GetNumRadicalElectrons() for atom in graph.GetAtoms())
    try:
        place = graph.GetConformer(conformer)
    except ValueError as error:
        ids = [one.GetId() for one in graph.GetConformers()]
        raise InvalidMolecule(
            f"{label} has no conformer {conformer}, only {ids}: make one with "
            "rdDistGeom.EmbedMolecule(graph), or use Molecule.from_smiles"
        ) from error
    if graph.GetNumAtoms() > 1 and not place.Is3D():
        raise InvalidMolecule(
            f"{label} has a drawing in the plane, not a geometry: make one with "
            "rdDistGeom.EmbedMolecule(graph), or use Molecule.from_smiles"
        )
    numbers = np.array([atom.GetAtomicNum() for atom in graph.GetAtoms()], np.int64)
    _check_fragments(graph, place.GetPositions(), label)
    charge = Chem.GetFormalCharge(graph)
    bohr = place.GetPositions() / BOHR_TO_ANGSTROM
    return Parts(numbers, bohr, charge, name=name, smiles=smiles, multiplicity=unpaired + 1)


def _check_fragments(graph: Mol, angstrom: Float[np.ndarray, "A 3"], label: str) -> None:
    """Raise InvalidMolecule if an atom of one fragment lies within one of another."""
    from rdkit import Chem

    table = Chem.GetPeriodicTable()
    radii = np.array([table.GetRcovalent(atom.GetAtomicNum()) for atom in graph.GetAtoms()])
    fragment = np.zeros(len(radii), int)
    for number, atoms in enumerate(Chem.GetMolFrags(graph)):
        fragment[list(atoms)] = number
    distance = np.linalg.norm(angstrom[:, None] - angstrom, axis=-1)
    close = (distance < CLOSEST * (radii[:, None] + radii)) & (fragment[:, None] != fragment)
    for i, j in np.argwhere(close)[:1]:
        raise InvalidMolecule(
            f"{label} has atoms {i} and {j} of two fragments only {distance[i, j]:.2f} Angstrom "
            "apart, less than half a bond: move them apart, or compute one fragment at a time"
        )


def perceived(
    numbers: Int[np.ndarray, " A"],
    positions_angstrom: Float[np.ndarray, "A 3"],
    charge: int,
    label: str,
) -> Mol:
    """A graph with one conformer, its bonds from distances.

    Raises:
        InvalidMolecule: no bonds fit; the message begins with `label`.
    """
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdDetermineBonds

    lines = [str(len(numbers)), ""]
    for number, (x, y, z) in zip(numbers, positions_angstrom, strict=True):
        lines.append(f"{symbol_of(int(number))} {x:.9f} {y:.9f} {z:.9f}")
    with rdBase.BlockLogs():
        graph = Chem.MolFromXYZBlock("\n".join([*lines, ""]))
        if graph is None:
            raise InvalidMolecule(f"{label}: RDKit does not know its elements; leave it out")
        try:
            rdDetermineBonds.DetermineBonds(graph, charge=charge)
        except ValueError as error:
            raise InvalidMolecule(
                f"{label}: RDKit finds no bonds that fit its geometry and charge ({error}); check "
                "both, or make the graph from a SMILES"
            ) from error
    return graph
