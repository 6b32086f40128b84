"""A molecule from element symbols, RDKit and SDF files, and as an object of ASE and RDKit.

The readers of XYZ, SMILES, PySCF and ASE stand in `Molecule` itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.base.errors import MissingPackage, UsageError
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS
from pyscf_ipu.molecule import objects
from pyscf_ipu.molecule.files.stated import ANGSTROM_PER_UNIT
from pyscf_ipu.molecule.parts import read_sdf

if TYPE_CHECKING:
    from ase import Atoms
    from numpy.typing import ArrayLike
    from rdkit.Chem import Mol


Made = TypeVar("Made", bound="Conversions")


class Conversions:
    """The base of Molecule: more ways in, and the ways out."""

    if TYPE_CHECKING:
        numbers: Int[np.ndarray, " A"]
        positions: Float[np.ndarray, "A 3"]
        charge: int
        multiplicity: int

        __init__: Callable[..., None]

    @classmethod
    def from_symbols(
        cls: type[Made],
        symbols: Sequence[str],
        positions: ArrayLike,
        charge: int = 0,
        unit: str = "angstrom",
        *,
        multiplicity: int = 1,
    ) -> Made:
        """Atoms by their element symbols, such as ["O", "H", "H"].

        Args:
            symbols: one per atom, in any case.
            positions: [A, 3], in the unit given.
            charge: in units of e.
            unit: "angstrom" or "bohr".
            multiplicity: 2S + 1.

        Raises:
            ValueError: an unknown symbol or unit, or positions of another shape.
        """
        if isinstance(symbols, str):
            raise UsageError(f"symbols is {symbols!r}: give a list such as ['O', 'H', 'H']")
        factor = ANGSTROM_PER_UNIT.get(unit.lower()) if isinstance(unit, str) else None
        if factor is None:
            raise UsageError(f"unit is {unit!r}: give 'angstrom' or 'bohr'")
        unknown = [s for s in symbols if str(s).capitalize() not in ATOMIC_NUMBERS]
        if unknown:
            raise UsageError(f"{unknown[0]!r} is no element symbol: give symbols such as 'C', 'Cl'")
        numbers = [ATOMIC_NUMBERS[str(s).capitalize()] for s in symbols]
        try:
            bohr = np.asarray(positions, np.float64) * (factor / BOHR_TO_ANGSTROM)
        except (TypeError, ValueError) as error:
            raise UsageError("positions is not an array of numbers: give [A, 3]") from error
        return cls(numbers, bohr, charge, multiplicity=multiplicity)

    @classmethod
    def from_rdkit(cls: type[Made], graph: Mol, conformer: int = -1) -> Made:
        """The atoms of an RDKit molecule in their order, at one of its conformers.

        The charge is that of the graph, `smiles` its canonical SMILES.

        Args:
            graph: with explicit hydrogens (`Chem.AddHs`) and a conformer in space.
            conformer: its id; -1 for the first.

        Raises:
            TypeError: this is not an RDKit molecule.
            InvalidMolecule: no such conformer, one that is flat (a drawing), hydrogens that are
                not atoms, or unpaired electrons.
        """
        return cls(**objects.parts_of_rdkit(graph, conformer)._asdict())

    @classmethod
    def from_sdf(cls: type[Made], path: str | Path, index: int | None = None) -> Made:
        """An entry of an SDF or MOL file; positions there are in Angstrom.

        A warning says when there are more entries although no index is given.

        Args:
            path: the file, packed or not.
            index: number of the entry, from 0, or from the end: -1 is the last; None for the first.

        Raises:
            FileNotFoundError: there is no such file.
            InvalidMolecule: the entry cannot be read, a data field states another charge than its
                atoms, or as for `from_rdkit`.
        """
        (parts,), remarks = read_sdf(Path(path), index)
        for remark in remarks:
            warnings.warn(remark, stacklevel=2)
        return cls(**parts._asdict())

    def to_ase(self) -> Atoms:
        """Give ASE's Atoms, in Angstrom; the charge is in `info["charge"]`.

        ASE's calculators do not read it: `pi.Calculator(charge=...)` takes it, and refuses another.

        Raises:
            MissingPackage: ASE is not installed.
        """
        try:
            from ase import Atoms
        except ImportError as error:
            raise MissingPackage(f"to_ase needs ASE: run {how_to_install('ase')}") from error
        info = {"charge": self.charge} if self.charge else {}
        if self.multiplicity > 1:
            info["multiplicity"] = self.multiplicity
        return Atoms(self.numbers, self.positions * BOHR_TO_ANGSTROM, info=info)

    def to_rdkit(self) -> Mol:
        """Give an RDKit molecule with the atoms in this order and this geometry.

        RDKit finds the bonds from distances and the charge (`rdDetermineBonds`).

        Raises:
            InvalidMolecule: no bonds can be found that fit elements, charge and distances.
        """
        angstrom = self.positions * BOHR_TO_ANGSTROM
        return objects.perceived(self.numbers, angstrom, self.charge, label=repr(self))
