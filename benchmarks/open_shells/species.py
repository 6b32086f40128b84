"""Open-shell species: atoms, diatomics, radicals, ions and triplets, of few shapes.

A shape is a program to compile, so most species have one or two atoms of one row and up to four or
six H.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks import harness
from pyscf_ipu import Molecule, Settings, Solver
from pyscf_ipu.base.errors import InvalidMolecule

Named = tuple[str, Molecule]

RADICALS = Path(__file__).with_name("radicals.smi")
"""SMILES, charge and multiplicity of radicals and ions of 3 to 9 heavy atoms."""

ATOMS = (
    "H 0 2, Li 0 2, Be 1 2, B 0 2, C 0 3, N 0 4, O 0 3, F 0 2, C -1 4, O 1 4, Na 0 2, Mg 1 2, "
    "Al 0 2, Si 0 3, P 0 4, S 0 3, Cl 0 2, S 1 4, He 1 2, Ne 1 2, Ar 1 2, Br 0 2"
)
"""Symbol, charge, multiplicity: ground states of H to Ar; ions of closed shells."""

DIATOMICS = (
    "O O 1.208 0 3, N O 1.151 0 2, C N 1.172 0 2, B O 1.205 0 2, N N 1.116 1 2, O O 1.116 1 2, "
    "O O 1.350 -1 2, F F 1.900 -1 2, C O 1.115 1 2, B B 1.590 0 3, "
    "C H 1.120 0 2, N H 1.036 0 3, O H 0.970 0 2, Be H 1.343 0 2, F H 1.001 1 2, "
    "S H 1.341 0 2, P H 1.422 0 3, Cl H 1.315 1 2, Si H 1.520 0 2, "
    "S O 1.481 0 3, Cl O 1.570 0 2, C S 1.495 1 2, P O 1.476 0 2, S O 1.420 1 2"
)
"""Two symbols, distance in Angstrom, charge, multiplicity: near the measured ground states."""

POLYATOMIC = (
    "[CH3] 0 2, [CH2] 0 3, [NH2] 0 2, O 1 2, N 1 2, C 1 2, [CH]=O 0 2, C[O] 0 2, C[CH2] 0 2, "
    "C=[CH] 0 2, C=C 0 3, C=O 1 2, C=C 1 2, C#N -1 2, [O]O 0 2, C[NH] 0 2, "
    "C[S] 0 2, [CH2]Cl 0 2, [SiH3] 0 2, [PH2] 0 2, S 1 2"
)
"""SMILES, charge and multiplicity."""


HEAVY = "I H 1.609 1 2, Te H 1.656 0 2, Sn H 1.770 0 2, Ag O 2.003 0 2, Sb H 1.711 0 3"
"""The same with core potentials in def2 sets."""
HEAVY_ATOMS = "I 0 2, Rb 0 2, Ag 0 2, Xe 1 2, Br 0 2, Te 0 3, Sb 0 4"


def atoms() -> list[Named]:
    """Single atoms and their ions."""
    return _atoms(ATOMS)


def diatomics() -> list[Named]:
    """Pairs of atoms on the z axis."""
    return _diatomics(DIATOMICS)


def heavy() -> list[Named]:
    """Atoms and pairs with elements beyond krypton."""
    return [*_atoms(HEAVY_ATOMS), *_diatomics(HEAVY)]


def _atoms(table: str) -> list[Named]:
    found = []
    for line in table.split(", "):
        symbol, charge, multiplicity = line.split()
        mol = _placed([symbol], [0.0], int(charge), int(multiplicity))
        found.append((_name(symbol, int(charge)), mol))
    return found


def _diatomics(table: str) -> list[Named]:
    found = []
    for line in table.split(", "):
        first, second, far, charge, multiplicity = line.split()
        mol = _placed([first, second], [0.0, float(far)], int(charge), int(multiplicity))
        found.append((_name(first + second, int(charge)), mol))
    return found


def polyatomic() -> list[Named]:
    """Radicals, radical ions and triplets from SMILES."""
    lines = [line.split() for line in POLYATOMIC.split(", ")]
    return [_ion(smiles, int(charge), int(multiplicity)) for smiles, charge, multiplicity in lines]


def everything() -> list[Named]:
    """All of them, those of one kind together."""
    return [*atoms(), *diatomics(), *polyatomic()]


def computable(chosen: Sequence[Named], level: Settings) -> list[Named]:
    """Species whose elements the basis set has, with functions enough for their electrons."""
    solver, found = Solver(level), []
    for one in chosen:
        with suppress(InvalidMolecule):
            solver.shape(one[1])
            found.append(one)
    return found


def radicals(limit: int | None = None) -> list[Named]:
    """Radicals and ions of 3 to 9 heavy atoms, at most `limit`, evenly from the file.

    Ions have the geometry that RDKit gives the molecule without its charge.
    """
    lines = [line.split() for line in RADICALS.read_text().splitlines() if line.strip()]
    chosen = harness.evenly(lines, limit)
    return [_ion(smiles, int(charge), int(multiplicity)) for smiles, charge, multiplicity in chosen]


def _ion(smiles: str, charge: int, multiplicity: int) -> Named:
    """A molecule from a SMILES, with another charge."""
    mol = Molecule.from_smiles(smiles, seed=0)
    ion = Molecule(
        mol.numbers, mol.positions, charge=charge, smiles=smiles, multiplicity=multiplicity
    )
    return f"{smiles} {charge:+d} {multiplicity}", ion


def _placed(symbols: list[str], z: list[float], charge: int, multiplicity: int) -> Molecule:
    """Atoms on the z axis, in Angstrom."""
    return Molecule.from_symbols(
        symbols,
        [[0.0, 0.0, far] for far in z],
        unit="angstrom",
        charge=charge,
        multiplicity=multiplicity,
    )


def _name(symbols: str, charge: int) -> str:
    """A formula with its charge."""
    assert all(letter.isalpha() for letter in symbols)
    return symbols + {-2: "2-", -1: "-", 0: "", 1: "+", 2: "2+"}[charge]
