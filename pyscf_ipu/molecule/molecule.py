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
from pyscf_ipu.base.nearest import explaining
from pyscf_ipu.elements.spellings import symbol_of
from pyscf_ipu.molecule.checks import (
    check_closed,
    check_electrons,
    check_elements,
    check_positions,
    whole_charge,
    whole_multiplicity,
)
from pyscf_ipu.molecule.conversions import Conversions
from pyscf_ipu.molecule.parts import read_xyz

if TYPE_CHECKING:
    from ase import Atoms
    from numpy.typing import ArrayLike
    from pyscf.gto import Mole

SPIN = "give multiplicity=, which is 2S + 1; PySCF's spin is 2S, one less"


@explaining({"spin": SPIN, "nelectron": "give charge=, in units of e"}, {})
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
    multiplicity: int = 1
    """2S + 1: 1 for closed shells, 2 with one unpaired electron, 3 for a triplet."""

    def __init__(
        self,
        numbers: ArrayLike,
        positions: ArrayLike,
        charge: int = 0,
        name: str = "",
        smiles: str = "",
        *,
        multiplicity: int = 1,
    ) -> None:
        """Copy the arrays (and make them read-only).

        Raises:
            ValueError: `numbers` is not [A] integers, `positions` not [A, 3] numbers in Bohr,
                `charge` not a whole number, or `multiplicity` not one from 1 on.
        """
        object.__setattr__(self, "numbers", _numbers(numbers))
        object.__setattr__(self, "positions", _positions(positions, len(self.numbers)))
        object.__setattr__(self, "charge", whole_charge(charge))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "smiles", smiles)
        object.__setattr__(self, "multiplicity", whole_multiplicity(multiplicity))

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return len(self.numbers)

    @property
    def n_electrons(self) -> int:
        """Number of all electrons: nuclear charges minus the molecular charge."""
        return int(self.numbers.sum()) - self.charge

    def n_occupied(self, basis: str) -> tuple[int, int]:
        """Numbers of alpha and of beta electrons, without those that core potentials replace.

        Args:
            basis: name of the basis set, which decides whether an element has a core potential.
        """
        from pyscf_ipu.elements.basis_sets import core_electrons

        core = sum(core_electrons(basis, int(number)) for number in self.numbers)
        both = self.n_electrons - core
        return (both + self.unpaired) // 2, (both - self.unpaired) // 2

    @property
    def unpaired(self) -> int:
        """Number of unpaired electrons, 2S."""
        return self.multiplicity - 1

    def refuse_cores(self, basis: str, why: str) -> None:
        """Raise UsageError if a basis set has core potentials for an element.

        Args:
            basis: its name.
            why: the end of the sentence.
        """
        from pyscf_ipu.elements.basis_sets import pyscf_ecp

        if pyscf_ecp(basis, self.numbers):
            raise UsageError(f"{basis=} has core potentials for elements of {self!r}, which {why}")

    @property
    def symbols(self) -> list[str]:
        """Element symbols, one per atom."""
        return [symbol_of(int(number)) for number in self.numbers]

    def check(self, precision: str = "float64", open_shell: bool = False) -> None:
        """Raise unless this is a molecule that a calculation can be started on.

        Whether the *basis* has functions for every element is the engine's question.

        Args:
            precision: that of the calculation; "float32" needs atoms further apart.
            open_shell: whether it is unrestricted, so that the multiplicity need not be 1.

        Raises:
            InvalidMolecule: no atoms, an unsupported element, a position that is not finite, two
                atoms closer than 0.2 Bohr (0.7 for float32), or a number of electrons that is not
                positive or does not go with the multiplicity.
        """
        label = _label(self)
        if self.n_atoms == 0:
            raise InvalidMolecule(f"{label} has no atoms; give at least one atom.")
        check_elements(self.numbers, label)
        check_positions(self.numbers, self.positions, label, precision=precision)
        check_electrons(self.n_electrons, self.charge, label, multiplicity=self.multiplicity)
        if not open_shell:
            check_closed(self.multiplicity, label)

    @classmethod
    def from_smiles(
        cls, smiles: str, seed: int = 0, *, multiplicity: int | None = None
    ) -> Molecule:
        """One ETKDGv3 conformer of a SMILES (needs RDKit); the charge is that of the SMILES.

        Args:
            smiles: for example "CCO", or "C[CH2]" for a radical.
            seed: of RDKit.
            multiplicity: 2S + 1; None for one more than the unpaired electrons of the SMILES,
                whose spins are then parallel.

        Raises:
            InvalidMolecule: the SMILES cannot be read or could not be embedded, or its electrons do
                not go with the multiplicity.
            MissingPackage: RDKit is not installed.
        """
        from pyscf_ipu.molecule.smiles import embedded

        numbers, positions, charge, unpaired = embedded(smiles, seed, multiplicity)
        spin = unpaired + 1 if multiplicity is None else multiplicity
        molecule = cls(numbers, positions, charge, smiles=smiles, multiplicity=spin)
        molecule.check(open_shell=True)
        return molecule

    @classmethod
    def from_xyz(
        cls,
        path: str | Path,
        charge: int | None = None,
        index: int | None = None,
        *,
        multiplicity: int | None = None,
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
            multiplicity: 2S + 1; None for that of the comment line (`multiplicity=2`, or two
                integers), or 1 without one.

        Raises:
            FileNotFoundError: there is no such file.
            InvalidMolecule: the file is not XYZ (the message names the line), or its comment states
                another charge or multiplicity, a lattice or an unknown unit.
        """
        (parts,), remarks = read_xyz(Path(path), index, charge, multiplicity=multiplicity)
        for remark in remarks:
            warnings.warn(remark, stacklevel=2)
        return cls(**parts._asdict())

    @classmethod
    def from_pyscf(cls, mole: Mole) -> Molecule:
        """The atoms, charge and spin of a `pyscf.gto.Mole`; its basis set is not taken over.

        Raises:
            InvalidMolecule: the `nelectron` of the Mole is not that of its nuclei and charge.
        """
        from pyscf_ipu.molecule.objects import parts_of_pyscf

        return cls(**parts_of_pyscf(mole)._asdict())

    @classmethod
    def from_ase(cls, atoms: Atoms, charge: int | None = None) -> Molecule:
        """The atoms of an `ase.Atoms` (positions there in Angstrom).

        The charge is `atoms.info["charge"]`, where ASE puts that of a file, or 0 if none is given.

        Constraints are lost, since a Molecule has none: `pyscf_ipu.optimize` moves fixed atoms
        too.  ASE's own optimisers with `pyscf_ipu.Calculator` keep them.

        The multiplicity is one more than the sum of the initial magnetic moments, in Bohr
        magnetons; `pyscf_ipu.uks` takes them as its `guess`, too.

        Raises:
            InvalidMolecule: the atoms are periodic, have magnetic moments whose sum is no whole
                number, initial charges that do not add up to `charge` (all zero says nothing), or
                state another charge or multiplicity in `info`.
        """
        from pyscf_ipu.molecule.objects import parts_of_ase

        return cls(**parts_of_ase(atoms, charge)._asdict())

    def __repr__(self) -> str:
        charge = f", charge={self.charge:+d}" if self.charge else ""
        spin = f", multiplicity={self.multiplicity}" if self.multiplicity > 1 else ""
        return f"Molecule({_formula(self)}{charge}{spin}, {self.n_atoms} atoms)"


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
