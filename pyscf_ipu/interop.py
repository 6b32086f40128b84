"""Molecules from elsewhere: SMILES (RDKit), XYZ files, PySCF and ASE objects; `RKS` for PySCF.

RDKit and ASE are optional and imported only inside the functions that need them.  `RKS`, PySCF's
mean-field class with this package's SCF, is `drop_in.RKS`, imported when it is asked for.
Shape legend: A atoms, K conformers. RDKit, ASE and XYZ files use Angstrom; a Molecule is in Bohr.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from .errors import InvalidMolecule
from .molecule import ATOMIC_NUMBERS, Molecule
from .units import BOHR_TO_ANGSTROM

if TYPE_CHECKING:
    from .drop_in import RKS as RKS

CHARGE_ROUNDING = 0.1
"""Partial charges, which files round, may miss the total charge by less than this many e."""


def __getattr__(name: str) -> object:
    if name == "RKS":
        from .drop_in import RKS

        return RKS
    raise AttributeError(f"module 'pyscf_ipu.interop' has no attribute {name!r}")


def molecule_from_smiles(smiles: str, seed: int = 0) -> Molecule:
    """See `Molecule.from_smiles`."""
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise ImportError(
            "Molecule.from_smiles needs RDKit, which is not installed: `pip install rdkit`, or "
            "give numbers and positions to Molecule(...) yourself."
        ) from error
    if not isinstance(smiles, str):
        raise TypeError(f"a SMILES is text such as 'CCO', not a {type(smiles).__name__}.")
    with rdBase.BlockLogs():
        graph = Chem.MolFromSmiles(smiles) if smiles.strip() else None
    if graph is None:
        raise InvalidMolecule(
            f"SMILES {smiles!r} cannot be read: a valid SMILES with normal valences is needed; "
            "check brackets, ring numbers and valences."
        )
    radicals = sum(atom.GetNumRadicalElectrons() for atom in graph.GetAtoms())
    if radicals:
        raise InvalidMolecule(
            f"SMILES {smiles!r} has {radicals} unpaired electron(s): the calculation is restricted "
            "(closed shell); add the missing hydrogens or the charge to the SMILES."
        )
    graph = Chem.AddHs(graph)
    charge = Chem.GetFormalCharge(graph)
    # The element and electron checks come before the embedding, which may be slow or impossible
    # for what is not allowed anyway; atoms on a line stand in for positions.
    numbers = [atom.GetAtomicNum() for atom in graph.GetAtoms()]
    line = np.arange(len(numbers))[:, None] * np.array([[9.0, 0.0, 0.0]])
    Molecule(numbers, line, charge, smiles=smiles).check()
    if not isinstance(seed, int) or not 0 <= seed < 2**31:
        raise ValueError(f"seed {seed!r} is not an integer from 0 to 2**31 - 1")
    sorted_numbers, positions = embed(graph, 1, seed)
    if not len(positions):
        raise InvalidMolecule(
            f"SMILES {smiles!r} could not be embedded in space by RDKit's ETKDGv3; try another "
            "seed=, or give a geometry with Molecule.from_xyz."
        )
    molecule = Molecule(sorted_numbers, positions[0], charge, smiles=smiles)
    molecule.check()
    return molecule


def embed(
    graph: Any, count: int, seed: int, timeout: int = 0
) -> tuple[Int[np.ndarray, " A"], Float[np.ndarray, "K A 3"]]:
    """Up to `count` ETKDGv3 conformers of an RDKit molecule that has its hydrogens.

    What fails is tried once more from random coordinates, as ring systems and cages often need.

    Args:
        graph: RDKit molecule, hydrogens added; its conformers are replaced.
        count: conformers asked for; K may be fewer, or 0.
        seed: RDKit random seed, 0 <= seed < 2**31; the same seed gives the same conformers.
        timeout: RDKit's own limit in seconds for one call, 0 for none.

    Returns:
        Atomic numbers with heavy atoms first and hydrogens last (otherwise in RDKit's order), and
        positions in Bohr in that order.
    """
    from rdkit import rdBase
    from rdkit.Chem import rdDistGeom

    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = seed
    parameters.timeout = timeout
    with rdBase.BlockLogs():
        rdDistGeom.EmbedMultipleConfs(graph, count, parameters)
        found = graph.GetNumConformers()  # the ids returned after a timeout are not conformers
        if found < count:
            parameters.useRandomCoords = True
            parameters.clearConfs = False
            parameters.randomSeed = (seed + 1) % 2**31
            rdDistGeom.EmbedMultipleConfs(graph, count - found, parameters)
    numbers = np.array([atom.GetAtomicNum() for atom in graph.GetAtoms()], dtype=np.int64)
    order = np.argsort(numbers == 1, kind="stable")
    shape = (graph.GetNumConformers(), len(numbers), 3)
    angstrom = np.array([c.GetPositions() for c in graph.GetConformers()]).reshape(shape)
    return numbers[order], angstrom[:, order] / BOHR_TO_ANGSTROM


def molecule_from_xyz(path: str | Path, charge: int = 0) -> Molecule:
    """See `Molecule.from_xyz`."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"XYZ file {path} does not exist or is not a file; check the path.")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    first = lines[0].strip() if lines else ""
    if not first.isdecimal() or int(first) < 1:
        raise _not_xyz(path, 1, f"is {first[:40]!r}", "the number of atoms")
    n_atoms = int(first)
    rows = lines[2 : 2 + n_atoms]
    comment = lines[1] if len(lines) > 1 else ""
    if re.search(r"pbc\s*=\s*\"?[^\"]*\bT", comment, flags=re.IGNORECASE):
        raise InvalidMolecule(f"{path} is periodic (pbc): only molecules are computed.")
    element_column, position_column, is_number = _xyz_columns(comment)
    numbers, positions = [], []
    for i, row in enumerate(rows):
        fields = row.split()
        try:
            element = fields[element_column]
            number = int(element) if is_number or element.isdecimal() else _number_of(element)
            xyz = [float(x) for x in fields[position_column : position_column + 3]]
            if len(xyz) != 3:
                raise ValueError("three coordinates are needed")
        except (IndexError, KeyError, ValueError) as error:
            needed = "an element symbol and x, y, z in Angstrom"
            raise _not_xyz(path, i + 3, f"is {row.strip()[:60]!r}", needed) from error
        numbers.append(number)
        positions.append(xyz)
    if len(rows) < n_atoms:
        what = f"is missing: the file ends after {len(rows)} of {n_atoms} atoms"
        raise _not_xyz(path, len(rows) + 3, what, "an atom")
    return Molecule(numbers, np.array(positions) / BOHR_TO_ANGSTROM, charge, name=path.stem)


def molecule_from_pyscf(mole: Any) -> Molecule:
    """See `Molecule.from_pyscf`."""
    from pyscf import gto
    from pyscf.data.elements import charge as atomic_number

    if not isinstance(mole, gto.Mole):
        raise TypeError(f"a pyscf.gto.Mole is needed, not a {type(mole).__name__}.")
    if mole.spin:
        raise InvalidMolecule(
            f"the PySCF Mole has spin={mole.spin} unpaired electrons: the calculation is "
            "restricted (closed shell) and needs spin=0."
        )
    if mole.nelectron != mole.tot_electrons():
        raise InvalidMolecule(
            f"the PySCF Mole has nelectron={mole.nelectron}, while its nuclei and charge="
            f"{mole.charge} make {mole.tot_electrons()} electrons: give charge= instead"
        )
    # Not mole.atom_charges(): those are smaller than the atomic numbers under an ECP.
    numbers = [atomic_number(mole.atom_symbol(i)) for i in range(mole.natm)]
    return Molecule(numbers, mole.atom_coords(), mole.charge)


def molecule_from_ase(atoms: Any, charge: int = 0) -> Molecule:
    """See `Molecule.from_ase`."""
    needed = ("pbc", "numbers", "positions", "get_initial_charges")
    if not all(hasattr(atoms, name) for name in needed):
        raise TypeError(f"an ase.Atoms is needed, not a {type(atoms).__name__}.")
    if np.any(atoms.pbc):
        raise InvalidMolecule(
            "the ASE Atoms are periodic: only molecules are computed; set `atoms.pbc = False` if "
            "the cell has no meaning."
        )
    if np.any(atoms.get_initial_magnetic_moments()):
        raise InvalidMolecule(
            f"the ASE Atoms {atoms.get_chemical_formula()} have initial magnetic moments: the "
            "calculation is restricted (closed shell); if a singlet is meant, remove them with "
            "`atoms.set_initial_magnetic_moments(None)`."
        )
    molecule = Molecule(atoms.numbers, np.asarray(atoms.positions) / BOHR_TO_ANGSTROM, charge)
    charges = atoms.get_initial_charges()
    if np.any(charges) and not abs(charges.sum() - molecule.charge) < CHARGE_ROUNDING:
        raise InvalidMolecule(
            f"the initial charges of the ASE Atoms {atoms.get_chemical_formula()} add up to "
            f"{charges.sum():+.3g}, which contradicts charge={molecule.charge}: give the charge as "
            "charge=, or remove them with `atoms.set_initial_charges(None)`."
        )
    return molecule


def _number_of(element: str) -> int:
    """Atomic number of a symbol written in any case, without a trailing label such as C1."""
    letters = re.match(r"[A-Za-z]+", element)
    return ATOMIC_NUMBERS[letters.group().capitalize()] if letters else ATOMIC_NUMBERS[element]


def _xyz_columns(comment: str) -> tuple[int, int, bool]:
    """Columns of the element and of x in extended XYZ; (0, 1, False) in plain XYZ."""
    properties = re.search(r'Properties\s*=\s*"?([\w:]+)', comment, flags=re.IGNORECASE)
    if not properties:
        return 0, 1, False
    parts = properties.group(1).split(":")
    columns: dict[str, int] = {}
    at = 0
    for name, width in zip(parts[0::3], parts[2::3], strict=False):
        columns[name.lower()] = at
        at += int(width) if width.isdecimal() else 1
    is_number = "species" not in columns and "z" in columns
    return columns.get("species", columns.get("z", 0)), columns.get("pos", 1), is_number


def _not_xyz(path: Path, line: int, what: str, needed: str) -> InvalidMolecule:
    return InvalidMolecule(
        f"line {line} of XYZ file {path} {what}: {needed} is needed there; an XYZ file has the "
        "number of atoms, a comment, then one line an atom."
    )
