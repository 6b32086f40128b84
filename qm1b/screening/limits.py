"""The limits of what is computed: elements, size, charge, closed shells."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from rdkit import Chem

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.elements.spellings import MAX_ATOMIC_NUMBER, symbol_of

SHOWN = 200
"""Characters of a dropped line that are kept."""

MAX_CHARGE = 8
"""Largest charge of either sign: no isolated molecule of this size holds more."""


class Dropped(Exception):
    """A record is left out; `reason` is a key of `schema.DROP_REASONS`."""

    smiles = ""
    """The identity of a record without one, as far as its atoms and bonds could be read."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class Limits:
    """The limits that a molecule must keep."""

    n_ao: Callable[[list[int]], int]
    """Number of AOs of some atomic numbers; raises InvalidMolecule if the basis lacks an
    element."""
    max_aos: int
    keep_charged: bool = False

    def check_atoms(self, graph: Chem.Mol) -> None:
        """Elements, fragments and a lower bound of the size, before RDKit does any chemistry.

        Raises:
            Dropped: unsupported_element, too_large or multi_fragment.
        """
        self.check_size([atom.GetAtomicNum() for atom in graph.GetAtoms()])
        fragments = len(Chem.GetMolFrags(graph))
        if fragments > 1:
            raise Dropped("multi_fragment", f"{fragments} fragments")

    def check_size(self, numbers: list[int]) -> None:
        """Elements, and the number of atomic orbitals.

        Raises:
            Dropped: unsupported_element or too_large.
        """
        for number in sorted(set(numbers)):
            if not 1 <= number <= MAX_ATOMIC_NUMBER:
                name = symbol_of(number) if number else "a wildcard or dummy atom"
                raise Dropped("unsupported_element", f"{name}; H to Rn are computed")
            try:
                self.n_ao([number])
            except InvalidMolecule as error:
                raise Dropped("unsupported_element", f"{symbol_of(number)}: {error}") from None
        n_ao = self.n_ao(numbers)
        if n_ao > self.max_aos:
            raise Dropped("too_large", f"at least {n_ao} AOs, more than --max-aos {self.max_aos}")

    def elements(self) -> list[int]:
        """Atomic numbers that molecules may have: those that the basis has, within --max-aos."""
        numbers = []
        for number in range(1, MAX_ATOMIC_NUMBER + 1):
            with suppress(Dropped):
                self.check_size([number])
                numbers.append(number)
        return numbers

    def check_electrons(self, graph: Chem.Mol) -> int:
        """Radicals, charge, parity and the size with hydrogens; returns the charge.

        Raises:
            Dropped: radical, charged, odd_electrons or too_large.
        """
        radicals = sum(atom.GetNumRadicalElectrons() for atom in graph.GetAtoms())
        if radicals:
            raise Dropped("radical", f"{radicals} unpaired electron(s)")
        charge = Chem.GetFormalCharge(graph)
        numbers = [atom.GetAtomicNum() for atom in graph.GetAtoms()]
        self.check_closed_shell(numbers + [1] * hydrogens(graph), charge)
        return charge

    def check_closed_shell(self, numbers: list[int], charge: int) -> None:
        """Charge, parity and size, hydrogens included.

        Raises:
            Dropped: charged, odd_electrons or too_large.
        """
        if charge and not self.keep_charged:
            raise Dropped("charged", f"charge {charge:+d}; --keep-charged keeps closed-shell ions")
        if abs(charge) > MAX_CHARGE:
            raise Dropped("charged", f"charge {charge:+d}; at most {MAX_CHARGE} of either sign")
        n_electrons = sum(numbers) - charge
        if n_electrons < 1 or n_electrons % 2:
            raise Dropped("odd_electrons", f"{n_electrons} electrons; only closed shells")
        self.check_size(numbers)


def hydrogens(graph: Chem.Mol) -> int:
    """Hydrogens that a graph implies without having them as atoms."""
    return sum(atom.GetTotalNumHs() for atom in graph.GetAtoms())
