"""Which records become molecules, and a reason for every one that is left out.

Nothing here embeds or computes; `Screen` decides from the molecular graph, or from the geometry
that the input brings, cheapest test first, so that a molecule of thousands of atoms costs a string
scan and not memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .geometry import Geometry
from .inputs.records import MAX_CHARACTERS, Record
from .schema import Drop

SHOWN = 200
"""Characters of a dropped line that are kept."""

MAX_CHARGE = 8
"""Of either sign. No molecule of this size holds more by itself."""

KEY_BYTES = 16
"""Of what is remembered of a molecule instead of its text: a million must fit in little memory."""


@dataclass(frozen=True)
class Candidate:
    """A molecule that passed every filter."""

    line: int
    smiles: str
    charge: int
    geometry: Geometry | None = None
    """The geometry that the input gave; None if RDKit has to find one."""
    first: int = 0
    """Number of its first conformer: geometries of one molecule are counted through."""

    @property
    def identity(self) -> str:
        """What tells molecules apart, and decides the seed."""
        return self.smiles or (self.geometry.identity if self.geometry else "")


class Dropped(Exception):
    """A record is left out; `reason` is a key of `schema.DROP_REASONS`."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


@dataclass
class Screen:
    """The filters, in order. Holds the molecules seen, so one Screen serves one run.

    n_ao gives the number of AOs for atomic numbers, and raises ValueError when the basis lacks an
    element. `copies` is how many conformers each given geometry becomes.
    """

    n_ao: Callable[[list[int]], int]
    max_aos: int
    keep_charged: bool = False
    copies: int = 1
    _seen: dict[bytes, int] = field(default_factory=dict)
    _geometries: dict[bytes, int] = field(default_factory=dict)

    def __call__(self, record: Record) -> Candidate | Drop:
        """The molecule of a record, or why it is left out."""
        try:
            if record.reason:
                raise Dropped(record.reason, record.detail)
            return self._geometry(record) if record.block else self._screen(record)
        except Dropped as dropped:
            text = record.smiles[:SHOWN].replace("\0", "\\0")
            return Drop(record.number, text, dropped.reason, " ".join(dropped.detail.split()))

    def _screen(self, record: Record) -> Candidate:
        from rdkit import rdBase

        with rdBase.BlockLogs():
            graph = graph_of(record.smiles, self)
            charge = self.check_electrons(graph)
            smiles = canonical(graph)
        first = self._seen.setdefault(_key(smiles), record.number)
        if first != record.number:
            raise Dropped("duplicate", f"same molecule as line {first}: {smiles}")
        return Candidate(record.number, smiles, charge)

    def _geometry(self, record: Record) -> Candidate:
        """A record that brings positions; several of one molecule are its conformers."""
        from . import given

        geometry, smiles, charge = given.read(record, self)
        numbers = geometry.numbers.tobytes()
        place = _key(f"{smiles} {charge}", numbers, geometry.positions.tobytes())
        first = self._seen.setdefault(place, record.number)
        if first != record.number:
            raise Dropped("duplicate", f"same molecule and positions as line {first}")
        candidate = Candidate(record.number, smiles, charge, geometry)
        key = _key(f"{candidate.identity} {charge}")
        frame = self._geometries.get(key, 0)
        self._geometries[key] = frame + 1
        return Candidate(record.number, smiles, charge, geometry, frame * self.copies)

    def check_atoms(self, graph: Any) -> None:
        """Elements, fragments and a lower bound of the size, before RDKit does any chemistry.

        Raises:
            Dropped: unsupported_element, too_large or multi_fragment.
        """
        from rdkit import Chem

        self.check_size([atom.GetAtomicNum() for atom in graph.GetAtoms()])
        fragments = len(Chem.GetMolFrags(graph))
        if fragments > 1:
            raise Dropped("multi_fragment", f"{fragments} fragments")

    def check_size(self, numbers: list[int]) -> None:
        """Elements, and the number of atomic orbitals.

        Raises:
            Dropped: unsupported_element or too_large.
        """
        from pyscf_ipu.molecule import MAX_ATOMIC_NUMBER, symbol_of

        for number in sorted(set(numbers)):
            if not 1 <= number <= MAX_ATOMIC_NUMBER:
                name = symbol_of(number) if number else "a wildcard or dummy atom"
                raise Dropped("unsupported_element", f"{name}; H to Cl are computed")
            try:
                self.n_ao([number])
            except ValueError as error:
                raise Dropped("unsupported_element", f"{symbol_of(number)}: {error}") from None
        n_ao = self.n_ao(numbers)
        if n_ao > self.max_aos:
            raise Dropped("too_large", f"at least {n_ao} AOs, more than --max-aos {self.max_aos}")

    def check_electrons(self, graph: Any) -> int:
        """Radicals, charge, parity and the true size; returns the charge.

        Raises:
            Dropped: radical, charged, odd_electrons or too_large.
        """
        from rdkit import Chem

        radicals = sum(atom.GetNumRadicalElectrons() for atom in graph.GetAtoms())
        if radicals:
            raise Dropped("radical", f"{radicals} unpaired electron(s)")
        charge = Chem.GetFormalCharge(graph)
        numbers = [atom.GetAtomicNum() for atom in graph.GetAtoms()]
        numbers += [1] * sum(atom.GetTotalNumHs() for atom in graph.GetAtoms())
        self.check_closed_shell(numbers, charge)
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


def canonical(graph: Any) -> str:
    """Canonical SMILES of a sanitised graph, without isotope labels and atom maps.

    Electronic energies know nothing of nuclear masses, and map numbers are bookkeeping. A
    stereocentre that only an isotope had made is none afterwards.
    """
    from rdkit import Chem

    has_labels = any(atom.GetIsotope() or atom.GetAtomicNum() == 1 for atom in graph.GetAtoms())
    for atom in graph.GetAtoms():
        atom.SetIsotope(0)
        atom.SetAtomMapNum(0)
    if has_labels:  # perceived again only where it may change: it takes time
        graph = Chem.AddHs(graph)
        Chem.AssignStereochemistry(graph, cleanIt=True, force=True)
    return Chem.MolToSmiles(Chem.RemoveHs(graph))


def _key(text: str, *more: bytes) -> bytes:
    digest = hashlib.blake2b(text.encode(), digest_size=KEY_BYTES)
    for part in more:
        digest.update(part)
    return digest.digest()


def graph_of(smiles: str, screen: Screen) -> Any:
    """RDKit's molecule of a SMILES, without explicit hydrogens.

    Raises:
        Dropped: it cannot be read, or has unsupported elements, several fragments or too many AOs.
    """
    graph = _parse(smiles)
    screen.check_atoms(graph)
    return _sanitise(smiles, graph)


def _parse(smiles: str) -> Any:
    """The bare graph, without any chemistry done to it."""
    from rdkit import Chem

    if not smiles:
        raise Dropped("empty", "no SMILES on this line")
    if len(smiles) > MAX_CHARACTERS:
        raise Dropped("too_long", f"more than {MAX_CHARACTERS} characters")
    if not smiles.isascii() or not smiles.isprintable():
        raise Dropped("unparsable", "holds bytes that are not SMILES text")
    parameters = Chem.SmilesParserParams()
    parameters.sanitize = False
    parameters.removeHs = False
    try:
        graph = Chem.MolFromSmiles(smiles, parameters)
    except RuntimeError as error:
        raise Dropped("unparsable", f"syntax: {str(error)[:SHOWN]}") from None
    if graph is None or graph.GetNumAtoms() == 0:
        raise Dropped("unparsable", "syntax error")
    return graph


def _sanitise(smiles: str, graph: Any) -> Any:
    """The chemical molecule: parsed again, now that it is known to be small."""
    from rdkit import Chem

    problems = Chem.DetectChemistryProblems(graph)
    if problems:
        raise Dropped("unparsable", problems[0].Message()[:SHOWN])
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise Dropped("unparsable", "not a valid molecule")
    return molecule
