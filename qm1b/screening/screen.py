"""Which records become molecules, and the reason why each of the others is left out.

Nothing here embeds or computes. `Screen` decides from the molecular graph, or from the geometry in
the input, with the cheapest test first: a molecule of thousands of atoms costs one scan of its
text, and no memory.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass, field, replace

from rdkit import Chem, rdBase

from pyscf_ipu.molecule.files.wrong_unit import in_words
from qm1b.inputs.records import Record
from qm1b.rows.schema import Drop
from qm1b.screening import geometries
from qm1b.screening.atom_order import AtomOrder
from qm1b.screening.geometries import Geometry
from qm1b.screening.graphs import canonical, parsed
from qm1b.screening.limits import CLOSED, SHOWN, Dropped, Limits

KEY_BYTES = 16
"""Digest size for the duplicate check: a million molecules must fit into little memory."""

PAIR = "two integers in the comment were read as charge and multiplicity; charge= says otherwise"


@dataclass(frozen=True)
class Candidate:
    """A molecule that passed every filter."""

    line: int
    smiles: str
    charge: int
    geometry: Geometry | None = None
    """The geometry in the input; None if RDKit has to find one."""
    first: int = 0
    """Number of its first conformer: all geometries of a molecule are numbered together."""
    id: str = ""
    """Its name in the input."""
    atoms: AtomOrder | None = None
    """Where the atoms of its SMILES stand in the input; None if a geometry says so, or nobody."""
    multiplicities: tuple[int, ...] = CLOSED
    """Each conformer becomes a row of each; of all but CLOSED the calculation is unrestricted."""

    @property
    def identity(self) -> str:
        """The text that identifies a molecule and decides its seed."""
        return self.smiles or (self.geometry.identity if self.geometry else "")

    @property
    def numbers(self) -> list[int]:
        """Atomic numbers, hydrogens included."""
        if self.geometry is not None:
            return [int(number) for number in self.geometry.numbers]
        with rdBase.BlockLogs():
            graph = Chem.MolFromSmiles(self.smiles)
        return [] if graph is None else [a.GetAtomicNum() for a in Chem.AddHs(graph).GetAtoms()]


@dataclass
class Screen:
    """The filters, in order. It remembers the molecules it has seen, so each run needs its own."""

    limits: Limits
    copies: int = 1
    """Conformers that each geometry in the input becomes."""
    remarks: dict[str, list[int]] = field(default_factory=dict)
    """What to say of geometries: for each sentence, the first one's number and their count."""
    _seen: dict[bytes, int] = field(default_factory=dict)
    _geometries: Counter[bytes] = field(default_factory=Counter)

    def __call__(self, record: Record) -> Candidate | Drop:
        """The molecule of a record, or why it is left out."""
        try:
            if record.reason:
                raise Dropped(record.reason, record.detail)
            return self._geometry(record) if record.block else self._screen(record)
        except Dropped as dropped:
            text = (record.smiles or dropped.smiles)[:SHOWN].replace("\0", "\\0")
            detail = " ".join(dropped.detail.split())
            return Drop(record.number, text, dropped.reason, detail=detail, id=record.id)

    @property
    def doubts(self) -> list[str]:
        """A sentence for each thing to be said of geometries, with their count."""
        sentences = []
        for remark, (first, count) in self.remarks.items():
            which = f"ies (the first is record {first})" if count > 1 else f"y (record {first})"
            sentences.append(f"{count} geometr{which}: {remark}")
        return sentences

    def _screen(self, record: Record) -> Candidate:
        with rdBase.BlockLogs():
            graph, molecule = parsed(record.smiles, self.limits)
            electrons = self.limits.check_electrons(molecule)
            smiles, heavy = canonical(molecule)
        first = self._seen.setdefault(_key(smiles), record.number)
        if first != record.number:
            raise Dropped("duplicate", f"same molecule as line {first}: {smiles}")
        atoms = AtomOrder.of(graph, heavy)
        charge, spins = electrons
        return Candidate(
            record.number, smiles, charge, id=record.id, atoms=atoms, multiplicities=spins
        )

    def _geometry(self, record: Record) -> Candidate:
        """A record with positions; several of one molecule are its conformers."""
        geometry, smiles, (charge, spins), pair = geometries.read(record, self.limits)
        numbers, positions = geometry.numbers.tobytes(), geometry.positions.tobytes()
        # A geometry in a multiplicity that it had before is a duplicate, whatever the others are.
        who = f"{smiles} {charge}"
        places = {m: _key(who + f" {m}" * (m > 1), numbers, positions) for m in spins}
        first = min(self._seen.get(place, record.number) for place in places.values())
        spins = tuple(m for m in spins if places[m] not in self._seen)
        self._seen |= dict.fromkeys(places.values(), first)
        if not spins:
            again = Dropped("duplicate", f"same molecule and positions as line {first}")
            again.smiles = smiles
            raise again
        molecule = Candidate(
            record.number, smiles, charge, geometry=geometry, id=record.id, multiplicities=spins
        )
        mistake = geometries.looks_like(geometry)
        for remark in (PAIR if pair else "", mistake and in_words(mistake)):
            if remark:
                self.remarks.setdefault(remark, [record.number, 0])[1] += 1
        key = _key(f"{molecule.identity} {charge}")
        before = self._geometries[key]
        self._geometries[key] += len(spins)
        return replace(molecule, first=before * self.copies)


def _key(text: str, *more: bytes) -> bytes:
    digest = hashlib.blake2b(text.encode(), digest_size=KEY_BYTES)
    for part in more:
        digest.update(part)
    return digest.digest()
