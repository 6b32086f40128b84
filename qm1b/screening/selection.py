"""Which molecules of a large database become the input of a dataset: by size, then the smallest.

QM1B took molecules of 9 to 11 heavy atoms of GDB-11 with few hydrogens, because the time of a
calculation grows with the orbitals (arXiv:2311.01135, section 4). The files are read twice, as
streams. Between the two there is one byte per record, in a temporary file, and a count for each
number of hydrogens: memory does not grow with the input.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from rdkit import Chem, rdBase

from qm1b import inputs
from qm1b.errors import UserError
from qm1b.inputs import Record
from qm1b.screening.graphs import bare
from qm1b.screening.limits import Dropped
from qm1b.settings import PRESETS, RunSettings

OUTSIDE, UNREADABLE = 255, 254
"""In place of a number of hydrogens."""

MOST_HYDROGENS = 253
BUFFER = 1 << 20


@dataclass(frozen=True)
class Criteria:
    """What a molecule must be."""

    heavy: tuple[int, int]
    """Least and largest number of heavy atoms."""
    max_hydrogens: int = MOST_HYDROGENS
    molecules: int | None = None
    """Take at most this many; None for all."""
    fewest_hydrogens: bool = False
    """Whether those with the fewest hydrogens are taken, else the first."""

    def hydrogens(self, smiles: str) -> int:
        """The number of hydrogens of a molecule that fits, else OUTSIDE or UNREADABLE."""
        graph = _graph(smiles)
        if graph is None:
            return UNREADABLE
        elements = [atom.GetAtomicNum() for atom in graph.GetAtoms()]
        heavy = sum(number > 1 for number in elements)
        if not self.heavy[0] <= heavy <= self.heavy[1]:
            return OUTSIDE
        implied = sum(atom.GetTotalNumHs() for atom in graph.GetAtoms())
        count = elements.count(1) + implied
        return count if count <= min(self.max_hydrogens, MOST_HYDROGENS) else OUTSIDE


@dataclass
class Selection:
    """What was found and what is taken."""

    read: int = 0
    unreadable: int = 0
    fitting: Counter[int] = field(default_factory=Counter)
    """Molecules that fit, by their number of hydrogens."""
    taken: Counter[int] = field(default_factory=Counter)
    """Those that are taken, by the same."""
    remarks: list[str] = field(default_factory=list)
    """What to say of the files."""

    def choose(self, criteria: Criteria) -> None:
        """Set `taken` where the numbers of hydrogens decide; the order of the input does the rest.

        Raises:
            UserError: too few fit.
        """
        there, wanted = self.fitting.total(), criteria.molecules
        if not there:
            raise UserError(
                f"none of {self.read} records has {_range(criteria.heavy)} heavy atoms and at most "
                f"{criteria.max_hydrogens} hydrogens; give other limits"
            )
        if wanted is not None and wanted > there:
            raise UserError(
                f"--molecules is {wanted}, but only {there} of {self.read} records fit; give at "
                f"most {there}"
            )
        left = there if wanted is None else wanted
        for hydrogens in sorted(self.fitting):
            self.taken[hydrogens] = min(left, self.fitting[hydrogens])
            left -= self.taken[hydrogens]


def select(
    files: Sequence[Path], criteria: Criteria, write: Callable[[bytes], object]
) -> Selection:
    """Write the chosen molecules of some files: a line of SMILES and id each, in their order.

    Args:
        files: inputs of SMILES, as `qm1b generate` reads them; read one after another.
        criteria: what a molecule must be; among equals the first ones are taken.
        write: takes the lines.

    Returns:
        The counts.

    Raises:
        UserError: a file cannot be read, is not of SMILES or changes meanwhile, too few fit, or the
            folder for temporary files is full.
    """
    selection = Selection()
    with rdBase.BlockLogs(), _marks(files, criteria, selection) as marks:
        selection.choose(criteria)
        left = Counter(
            selection.taken if criteria.fewest_hydrogens else {0: selection.taken.total()}
        )
        selection.taken.clear()
        for record in _records(files, []):
            mark = (marks.read(1) or b"\0")[0]  # a file that has grown leaves something over below
            place = mark if criteria.fewest_hydrogens else 0
            if mark > MOST_HYDROGENS or not left[place]:
                continue
            left[place] -= 1
            selection.taken[mark] += 1
            write(_line(record).encode())
    if +left:
        raise UserError(f"{files[-1]} or a file before it has changed meanwhile; run it again")
    return selection


def _marks(files: Sequence[Path], criteria: Criteria, selection: Selection) -> IO[bytes]:
    """Count the records; returns a file with a byte for each."""
    try:
        with ExitStack() as kept:
            marks = kept.enter_context(tempfile.TemporaryFile(buffering=BUFFER))
            for record in _records(files, selection.remarks):
                mark = criteria.hydrogens(record.smiles) if not record.reason else UNREADABLE
                marks.write(bytes((mark,)))
                selection.read += 1
                selection.unreadable += mark == UNREADABLE
                if mark <= MOST_HYDROGENS:
                    selection.fitting[mark] += 1
            marks.seek(0)
            kept.pop_all()
            return marks
    except OSError as error:  # of this file: those of the inputs are sentences already
        place = tempfile.tempdir or "the folder for temporary files"
        raise UserError(
            f"{place} has no room for a byte per record ({error.strerror}); make room there, or "
            "name another folder for temporary files: TMPDIR=FOLDER qm1b select ..."
        ) from None


def as_text(selection: Selection, criteria: Criteria) -> str:
    """The counts, and where the selection ends."""
    lines = [
        *selection.remarks,
        f"{selection.read:,} records read, {selection.unreadable:,} of them not readable",
        f"{selection.fitting.total():,} have {_range(criteria.heavy)} heavy atoms and at most "
        f"{criteria.max_hydrogens} hydrogens",
        "hydrogens: "
        + ", ".join(
            f"{h}: {selection.taken[h]:,} of {n:,}" for h, n in sorted(selection.fitting.items())
        ),
    ]
    return "\n".join(lines)


def _records(files: Sequence[Path], remarks: list[str]) -> Iterator[Record]:
    """The records of some files; adds to the remarks."""
    settings = RunSettings(PRESETS["qm1b"], 1)
    for path in files:
        if (kind := inputs.resolve(path)) in inputs.GEOMETRIES:
            raise UserError(f"{path} looks like {kind}; qm1b select reads SMILES")
        if kind in inputs.REMARKS:
            remarks.append(f"{path}: {inputs.REMARKS[kind]}")
        yield from inputs.read(path, settings)


def _graph(smiles: str) -> Chem.Mol | None:
    """A graph with its hydrogens counted, without further chemistry; None if there is none."""
    try:
        graph = bare(smiles)
        graph.UpdatePropertyCache(strict=True)  # refuses impossible valences
    except (Dropped, RuntimeError, ValueError):
        return None
    return graph


def _line(record: Record) -> str:
    return f"{record.smiles}\t{record.id}\n" if record.id else f"{record.smiles}\n"


def _range(heavy: tuple[int, int]) -> str:
    return str(heavy[0]) if heavy[0] == heavy[1] else f"{heavy[0]} to {heavy[1]}"
