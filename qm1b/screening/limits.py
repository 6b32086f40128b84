"""The limits of what is computed: elements, size, charge, spin."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from rdkit import Chem

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.elements.spellings import MAX_ATOMIC_NUMBER, symbol_of
from qm1b.reference import free_atoms
from qm1b.settings import EVERY, RunSettings

SHOWN = 200
"""Characters of a dropped line that are kept."""

MAX_CHARGE = 8
"""Largest charge of either sign: no isolated molecule of this size holds more."""


CLOSED = (1,)
"""The multiplicities of a closed shell, which alone is computed in restricted form."""

KEEPS = "--open-shells keeps open shells"


class Electrons(NamedTuple):
    """What a molecule's electrons are, as its record has them."""

    charge: int
    """In e."""
    multiplicities: tuple[int, ...] = CLOSED
    """Those that are computed, the highest first."""


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
    open_shells: bool = False
    every_multiplicity: bool = False
    """Whether open shells have all multiplicities that their unpaired electrons allow."""

    @classmethod
    def of(cls, settings: RunSettings, n_ao: Callable[[list[int]], int]) -> "Limits":
        """The limits of a run."""
        return cls(
            n_ao,
            settings.max_aos,
            settings.keep_charged,
            open_shells=settings.open_shells,
            every_multiplicity=settings.multiplicities == EVERY,
        )

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

    def check_electrons(self, graph: Chem.Mol, multiplicity: int | None = None) -> Electrons:
        """Radicals, charge, parity and the size with hydrogens.

        Args:
            graph: of the molecule.
            multiplicity: the one that its record states; None for one more than the unpaired
                electrons of the graph, which are parallel by Hund's rule.

        Raises:
            Dropped: radical, charged, odd_electrons or too_large.
        """
        radicals = sum(atom.GetNumRadicalElectrons() for atom in graph.GetAtoms())
        if radicals and not self.open_shells:
            raise Dropped("radical", f"{radicals} unpaired electron(s); {KEEPS}")
        charge = Chem.GetFormalCharge(graph)
        numbers = [atom.GetAtomicNum() for atom in graph.GetAtoms()]
        spin = radicals + 1 if multiplicity is None else multiplicity
        if multiplicity is None and radicals and len(numbers) == 1 and not hydrogens(graph):
            spin = of_atom(numbers[0] - charge, spin)
        return self.check_spin(numbers + [1] * hydrogens(graph), charge, multiplicity=spin)

    def check_spin(
        self, numbers: list[int], charge: int, multiplicity: int | None = None
    ) -> Electrons:
        """Charge, parity and size, hydrogens included.

        Args:
            numbers: of all atoms.
            charge: in e.
            multiplicity: 2S + 1; None for the least that the number of electrons allows.

        Raises:
            Dropped: charged, odd_electrons or too_large.
        """
        if charge and not self.keep_charged:
            raise Dropped("charged", f"charge {charge:+d}; --keep-charged keeps ions")
        if abs(charge) > MAX_CHARGE:
            raise Dropped("charged", f"charge {charge:+d}; at most {MAX_CHARGE} of either sign")
        n_electrons = sum(numbers) - charge
        if n_electrons < 1:
            raise Dropped("odd_electrons", "no electrons")
        if n_electrons % 2 and not self.open_shells:
            raise Dropped("odd_electrons", f"{n_electrons} electrons; {KEEPS}")
        spin = n_electrons % 2 + 1 if multiplicity is None else multiplicity
        if not 0 < spin <= n_electrons + 1 or (n_electrons - spin) % 2 == 0:
            raise Dropped("odd_electrons", f"{n_electrons} electrons; multiplicity {spin}")
        self.check_size(numbers)
        least = spin if not self.every_multiplicity else 1 + n_electrons % 2
        return Electrons(charge, tuple(range(spin, least - 1, -2)))


def of_atom(electrons: int, otherwise: int) -> int:
    """The multiplicity of an atom's ground state, by its number of electrons; `otherwise` if d or f
    shells are open."""
    is_known = 1 <= electrons <= MAX_ATOMIC_NUMBER and electrons not in free_atoms.OPEN_D
    return free_atoms.multiplicity(electrons) if is_known else otherwise


def hydrogens(graph: Chem.Mol) -> int:
    """Hydrogens that a graph implies without having them as atoms."""
    return sum(atom.GetTotalNumHs() for atom in graph.GetAtoms())
