"""The molecule: atomic numbers, positions in Bohr and a charge, and what makes one computable.

Shape legend: A atoms.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.base.errors import InvalidMolecule, UsageError
from pyscf_ipu.elements.spellings import symbol_of
from pyscf_ipu.molecule.checks import check_electrons, check_elements, check_positions, whole_charge
from pyscf_ipu.molecule.conversions import Conversions
from pyscf_ipu.molecule.parts import read_xyz

if TYPE_CHECKING:
    from ase import Atoms
    from numpy.typing import ArrayLike
    from pyscf.gto import Mole


@dataclass(frozen=True, eq=False)
class Molecule(Conversions):
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
        numbers: ArrayLike,
        positions: ArrayLike,
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
        """Number of all electrons: nuclear charges minus the molecular charge."""
        return int(self.numbers.sum()) - self.charge

    def n_occupied(self, basis: str) -> int:
        """Number of doubly occupied orbitals, without those that core potentials replace.

        Args:
            basis: name of the basis set, which decides whether an element has a core potential.
        """
        from pyscf_ipu.elements.basis_sets import core_electrons

        core = sum(core_electrons(basis, int(number)) for number in self.numbers)
        return (self.n_electrons - core) // 2

    @property
    def symbols(self) -> list[str]:
        """Element symbols, one per atom."""
        return [symbol_of(int(number)) for number in self.numbers]

    def check(self, precision: str = "float64") -> None:
        """Raise unless this is a molecule that a closed-shell calculation can be started on.

        Whether the *basis* has functions for every element is the engine's question.

        Args:
            precision: that of the calculation; "float32" needs atoms further apart.

        Raises:
            InvalidMolecule: no atoms, an unsupported element, a position that is not finite, two
                atoms closer than 0.2 Bohr (0.7 for float32), or an electron count that is odd or
                not positive.
        """
        label = _label(self)
        if self.n_atoms == 0:
            raise InvalidMolecule(f"{label} has no atoms; give at least one atom.")
        check_elements(self.numbers, label)
        check_positions(self.numbers, self.positions, label, precision=precision)
        check_electrons(self.n_electrons, self.charge, label)

    @classmethod
    def from_smiles(cls, smiles: str, seed: int = 0) -> Molecule:
        """One ETKDGv3 conformer of a SMILES (needs RDKit); the charge is that of the SMILES.

        Raises:
            InvalidMolecule: the SMILES cannot be read, is open-shell, or could not be embedded.
            MissingPackage: RDKit is not installed.
        """
        from pyscf_ipu.molecule.smiles import embedded

        numbers, positions, charge = embedded(smiles, seed)
        molecule = cls(numbers, positions, charge, smiles=smiles)
        molecule.check()
        return molecule

    @classmethod
    def from_xyz(
        cls, path: str | Path, charge: int | None = None, index: int | None = None
    ) -> Molecule:
        """A frame of an XYZ or extended XYZ file; `pyscf_ipu.read_molecules` reads all of them.

        Positions are in Angstrom, unless the comment line says `units=Bohr`.  A warning says when
        they look like another unit, when two integers in the comment were read as charge and
        multiplicity, and when there are more frames although no index is given.

        Args:
            path: the file, packed or not.
            charge: in units of e; None for that of the comment line (`charge=1`,
                `total_charge=1`, or two integers `1 1`), or 0 without one.
            index: number of the frame, from 0, or from the end: -1 is the last; None for the first.

        Raises:
            FileNotFoundError: there is no such file.
            InvalidMolecule: the file is not XYZ (the message names the line), or its comment states
                another charge, an open shell (`multiplicity=3`), a lattice or an unknown unit.
        """
        (parts,), remarks = read_xyz(Path(path), index, charge)
        for remark in remarks:
            warnings.warn(remark, stacklevel=2)
        return cls(**parts._asdict())

    @classmethod
    def from_pyscf(cls, mole: Mole) -> Molecule:
        """The atoms and charge of a `pyscf.gto.Mole`; its basis set is not taken over.

        Raises:
            InvalidMolecule: the Mole is open-shell (`spin` is not 0), or its `nelectron` is not
                that of its nuclei and charge.
        """
        from pyscf_ipu.molecule.objects import parts_of_pyscf

        return cls(**parts_of_pyscf(mole)._asdict())

    @classmethod
    def from_ase(cls, atoms: Atoms, charge: int | None = None) -> Molecule:
        """The atoms of an `ase.Atoms` (positions there in Angstrom).

        The charge is `atoms.info["charge"]`, where ASE puts that of a file, or 0 if none is given.

        Constraints are lost, since a Molecule has none: `pyscf_ipu.optimize` moves fixed atoms
        too.  ASE's own optimisers with `pyscf_ipu.Calculator` keep them.

        Raises:
            InvalidMolecule: the atoms are periodic, have initial magnetic moments (open shells),
                initial charges that do not add up to `charge` (all zero says nothing), or state
                another charge or an open shell in `info`.
        """
        from pyscf_ipu.molecule.objects import parts_of_ase

        return cls(**parts_of_ase(atoms, charge)._asdict())

    def __repr__(self) -> str:
        charge = f", charge={self.charge:+d}" if self.charge else ""
        return f"Molecule({_formula(self)}{charge}, {self.n_atoms} atoms)"


def _numbers(numbers: object) -> Int[np.ndarray, " A"]:
    array = np.asarray(numbers)
    whole = array.size == 0 or (
        np.issubdtype(array.dtype, np.integer)
        or (
            np.issubdtype(array.dtype, np.floating)
            and bool(np.all(np.isfinite(array) & (array == np.round(array))))
        )
    )
    if array.ndim != 1 or not whole:
        raise UsageError(
            f"numbers has shape {array.shape} and type {array.dtype}: "
            "it must be a list of whole atomic numbers, one per atom, such as [8, 1, 1]."
        )
    copy = array.astype(np.int64)
    copy.setflags(write=False)
    return copy


def _positions(positions: object, n_atoms: int) -> Float[np.ndarray, "A 3"]:
    try:
        copy = np.array(positions, np.float64)
    except (TypeError, ValueError) as error:
        if type(error).__name__ == "TracerArrayConversionError":
            raise UsageError(
                "positions are traced by JAX (by jit, grad or vmap), and a Molecule has numbers: "
                "use pyscf_ipu.energy_function, a function of the positions that JAX can transform"
            ) from None
        raise UsageError(
            "positions is not an array of numbers: it must be [A, 3] in Bohr, one row per atom."
        ) from error
    if copy.size == 0 and n_atoms == 0:
        copy = copy.reshape(0, 3)
    if copy.shape != (n_atoms, 3):
        raise UsageError(
            f"positions has shape {copy.shape}: with {n_atoms} atomic numbers it must be "
            f"({n_atoms}, 3), one row of x, y, z in Bohr per atom."
        )
    copy.setflags(write=False)
    return copy


def _label(molecule: Molecule) -> str:
    return f"molecule {molecule.name or molecule.smiles or _formula(molecule)}"


def _formula(molecule: Molecule) -> str:
    """Hill formula, C and H first."""
    symbols = molecule.symbols
    order = sorted(set(symbols), key=lambda s: (s != "C", s != "H", s))
    return "".join(f"{s}{symbols.count(s) if symbols.count(s) > 1 else ''}" for s in order) or "()"
