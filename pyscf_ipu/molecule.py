"""The molecule: atomic numbers, positions in Bohr and a charge, and what makes one computable.

Shape legend: A atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from .errors import InvalidMolecule
from .units import BOHR_TO_ANGSTROM

if TYPE_CHECKING:
    import numpy.typing as npt

SYMBOLS: tuple[str, ...] = tuple(
    "X H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se "
    "Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy "
    "Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf "
    "Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og".split()
)
"""Element symbols; the index is the atomic number."""

ATOMIC_NUMBERS: dict[str, int] = {symbol: number for number, symbol in enumerate(SYMBOLS)}

MAX_ATOMIC_NUMBER = 17
"""Cl, the heaviest element that the engine computes."""

MIN_DISTANCE_BOHR = 0.2
"""Closer atoms are taken for a mistake: the shortest bond, H2, is 1.4 Bohr long."""


def symbol_of(number: int) -> str:
    """Element symbol of an atomic number: X for 0, such as (Z=200) where there is no element."""
    return SYMBOLS[number] if 0 <= number < len(SYMBOLS) else f"(Z={number})"


@dataclass(frozen=True, eq=False)
class Molecule:
    """Atoms in space. The constructor takes lists or arrays and checks their shapes only.

    `check()` says whether the molecule can be computed; it is separate so that one bad molecule in
    a list of many can be reported as data instead of ending the list.
    """

    numbers: Int[np.ndarray, " A"]
    """Atomic numbers."""
    positions: Float[np.ndarray, "A 3"]
    """Positions in Bohr, float64."""
    charge: int = 0
    """Total charge in units of e."""
    name: str = ""
    smiles: str = ""

    def __init__(
        self,
        numbers: Sequence[int] | npt.NDArray[Any],
        positions: Sequence[Sequence[float]] | npt.NDArray[Any],
        charge: int = 0,
        name: str = "",
        smiles: str = "",
    ) -> None:
        """Copy the arrays (and make them read-only).

        Raises:
            ValueError: `numbers` is not [A] integers, `positions` not [A, 3] numbers in Bohr, or
                `charge` not a whole number.
        """
        object.__setattr__(self, "numbers", _numbers(numbers))
        object.__setattr__(self, "positions", _positions(positions, len(self.numbers)))
        object.__setattr__(self, "charge", whole_charge(charge))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "smiles", smiles)

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return len(self.numbers)

    @property
    def n_electrons(self) -> int:
        """Number of electrons: nuclear charges minus the molecular charge."""
        return int(self.numbers.sum()) - self.charge

    @property
    def symbols(self) -> list[str]:
        """Element symbols, one an atom."""
        return [symbol_of(int(number)) for number in self.numbers]

    def check(self) -> None:
        """Raise unless this is a molecule that a closed-shell calculation can be started on.

        Whether the *basis* has functions for every element is the engine's question.

        Raises:
            InvalidMolecule: no atoms, an unsupported element, a position that is not finite, two
                atoms closer than 0.2 Bohr, or an electron count that is odd or not positive.
        """
        label = _label(self)
        if self.n_atoms == 0:
            raise InvalidMolecule(f"{label} has no atoms; give at least one atom.")
        _check_elements(self.numbers, label)
        _check_positions(self.numbers, self.positions, label)
        _check_electrons(self.n_electrons, self.charge, label)

    @classmethod
    def from_smiles(cls, smiles: str, seed: int = 0) -> Molecule:
        """One ETKDGv3 conformer of a SMILES (needs RDKit); the charge is that of the SMILES.

        Raises:
            InvalidMolecule: the SMILES cannot be read, is open-shell, or could not be embedded.
            ImportError: RDKit is not installed.
        """
        from .interop import molecule_from_smiles

        return molecule_from_smiles(smiles, seed)

    @classmethod
    def from_xyz(cls, path: str | Path, charge: int = 0) -> Molecule:
        """The first frame of an XYZ or extended XYZ file (positions there in Angstrom).

        Raises:
            FileNotFoundError: there is no such file.
            InvalidMolecule: the file is not XYZ; the message names the line.
        """
        from .interop import molecule_from_xyz

        return molecule_from_xyz(path, charge)

    @classmethod
    def from_pyscf(cls, mole: Any) -> Molecule:
        """The atoms and charge of a `pyscf.gto.Mole`; its basis set is not taken over.

        Raises:
            InvalidMolecule: the Mole is open-shell (`spin` is not 0), or its `nelectron` is not
                that of its nuclei and charge.
        """
        from .interop import molecule_from_pyscf

        return molecule_from_pyscf(mole)

    @classmethod
    def from_ase(cls, atoms: Any, charge: int = 0) -> Molecule:
        """The atoms of an `ase.Atoms` (positions there in Angstrom).

        Constraints are lost, since a Molecule has none: `pyscf_ipu.optimize` moves fixed atoms
        too.  ASE's own optimisers with `pyscf_ipu.Calculator` keep them.

        Raises:
            InvalidMolecule: the atoms are periodic, have initial magnetic moments (open shells),
                or initial charges that do not add up to `charge` (all zero says nothing).
        """
        from .interop import molecule_from_ase

        return molecule_from_ase(atoms, charge)

    def __repr__(self) -> str:
        charge = f", charge={self.charge:+d}" if self.charge else ""
        return f"Molecule({_formula(self)}{charge}, {self.n_atoms} atoms)"


def whole_charge(charge: Any) -> int:
    """A charge in units of e as an int; raises ValueError unless it is a whole number."""
    whole = isinstance(charge, (int, float, np.number)) and not isinstance(charge, bool)
    if not whole or not np.isfinite(charge) or int(charge) != charge:
        raise ValueError(f"charge is {charge!r}: it must be a whole number, in units of e.")
    return int(charge)


def _numbers(numbers: Any) -> npt.NDArray[np.int64]:
    array = np.asarray(numbers)
    whole = array.size == 0 or (
        np.issubdtype(array.dtype, np.integer)
        or (
            np.issubdtype(array.dtype, np.floating)
            and bool(np.all(np.isfinite(array) & (array == np.round(array))))
        )
    )
    if array.ndim != 1 or not whole:
        raise ValueError(
            f"numbers has shape {array.shape} and type {array.dtype}: "
            "it must be a list of whole atomic numbers, one an atom, such as [8, 1, 1]."
        )
    copy = array.astype(np.int64)
    copy.setflags(write=False)
    return copy


def _positions(positions: Any, n_atoms: int) -> npt.NDArray[np.float64]:
    try:
        copy = np.array(positions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "positions is not an array of numbers: it must be [A, 3] in Bohr, one row an atom."
        ) from error
    if copy.size == 0 and n_atoms == 0:
        copy = copy.reshape(0, 3)
    if copy.shape != (n_atoms, 3):
        raise ValueError(
            f"positions has shape {copy.shape}: with {n_atoms} atomic numbers it must be "
            f"({n_atoms}, 3), one row of x, y, z in Bohr an atom."
        )
    copy.setflags(write=False)
    return copy


def _check_elements(numbers: npt.NDArray[np.int64], label: str) -> None:
    bad = [i for i, number in enumerate(numbers) if not 1 <= number <= MAX_ATOMIC_NUMBER]
    if bad:
        number = int(numbers[bad[0]])
        known = 1 <= number < len(SYMBOLS)
        what = f"{symbol_of(number)} ({number})" if known else f"number {number}"
        raise InvalidMolecule(
            f"{label} has element {what} at atom {bad[0]}: elements H to Cl (atomic numbers 1 to "
            f"{MAX_ATOMIC_NUMBER}) are computed; leave this molecule out."
        )


def _check_positions(
    numbers: npt.NDArray[np.int64], positions: npt.NDArray[np.float64], label: str
) -> None:
    bad = np.flatnonzero(~np.isfinite(positions).all(axis=1))
    if bad.size:
        i = int(bad[0])
        raise InvalidMolecule(
            f"{label} has position {positions[i].tolist()} Bohr at atom {i} "
            f"({symbol_of(int(numbers[i]))}): every coordinate must be a finite number; repair or "
            "leave out this molecule."
        )
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
    distance[np.diag_indices(len(numbers))] = np.inf
    i, j = sorted(int(k) for k in np.unravel_index(int(np.argmin(distance)), distance.shape))
    if distance[i, j] < MIN_DISTANCE_BOHR:
        raise InvalidMolecule(
            f"{label} has atoms {i} ({symbol_of(int(numbers[i]))}) and {j} "
            f"({symbol_of(int(numbers[j]))}) only {distance[i, j]:.3g} Bohr apart "
            f"({distance[i, j] * BOHR_TO_ANGSTROM:.3g} Angstrom): at least {MIN_DISTANCE_BOHR} "
            f"Bohr ({MIN_DISTANCE_BOHR * BOHR_TO_ANGSTROM:.3g} Angstrom) is allowed; check the "
            "geometry and its unit: Molecule(numbers, positions) takes Bohr; text, XYZ files and "
            "ASE have Angstrom."
        )


def _check_electrons(n_electrons: int, charge: int, label: str) -> None:
    if n_electrons > 0 and n_electrons % 2 == 0:
        return
    what = "no electrons" if n_electrons <= 0 else f"an odd number of electrons ({n_electrons})"
    raise InvalidMolecule(
        f"{label} with charge {charge:+d} has {what}: the calculation is restricted (closed shell) "
        "and needs a positive, even number; for an ion give its charge=, radicals are not computed."
    )


def _label(molecule: Molecule) -> str:
    return f"molecule {molecule.name or molecule.smiles or _formula(molecule)}"


def _formula(molecule: Molecule) -> str:
    """Hill formula, C and H first."""
    symbols = molecule.symbols
    order = sorted(set(symbols), key=lambda s: (s != "C", s != "H", s))
    return "".join(f"{s}{symbols.count(s) if symbols.count(s) > 1 else ''}" for s in order) or "()"
