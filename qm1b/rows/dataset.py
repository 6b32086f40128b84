"""Datasets of rows, wherever they are stored: as a stream, or with rows by number."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import overload

from qm1b.rows.batch import BY_NAME, OFFSETS, Batch, Record
from qm1b.rows.schema import FREE_ATOMS, Json


class Dataset(ABC):
    """Rows in a file or folder. Nothing is read before it is needed::

        for row in qm1b.load("data/mine"):
            row["energy"], row["positions"]  # hartree, bohr
        for batch in qm1b.load("mine.parquet", fields=["energy", "smiles"]).batches():
            batch["energy"]  # [R]

    Fields have the names and units of `schema.FIELDS`.
    """

    path: Path
    metadata: Json
    """The run's manifest, as far as the file has it; may be empty."""

    def __init__(self, path: Path, fields: Sequence[str] | None) -> None:
        self.path = path
        self.fields = None if fields is None else list(fields)
        """Fields to read; None for all that the file has."""

    @property
    def units(self) -> dict[str, str]:
        """The unit of each field that the rows may have."""
        names = BY_NAME if self.fields is None else self.fields
        return {name: BY_NAME[name].unit for name in names if name not in OFFSETS}

    @property
    def free_atom_energies(self) -> dict[str, float]:
        """The energy of each element's free atom in Hartree, by symbol, at the rows' level.

        PySCF's, unrestricted and in the ground state's multiplicity; see
        `qm1b.reference.free_atoms`. Empty if the file does not have them.
        """
        return dict(self.metadata.get(FREE_ATOMS, {}))

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """All rows in the order of the file, some thousands at a time."""

    def __iter__(self) -> Iterator[Record]:
        """All rows in the order of the file."""
        for batch in self.batches():
            yield from batch.rows()

    def _only(self, batch: Batch) -> Batch:
        return batch if self.fields is None else batch.only(self.fields)


class Indexed(Dataset):
    """A dataset in parts of known sizes. It has a length, and rows by number.

    The last part that was read stays in memory: rows near each other are cheap, distant ones are
    not.
    """

    _last: tuple[int, Batch] | None = None

    @abstractmethod
    def part(self, number: int) -> Batch:
        """All rows of a part (a shard, a row group)."""

    @cached_property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Rows in each part."""

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(self.sizes))

    def __len__(self) -> int:
        """Number of rows."""
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        """A row by its number, from 0 or, if negative, from the end; a list of rows for a slice.

        Raises:
            IndexError: there is no such row.
        """
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"row {index} of a dataset with {len(self)} rows")
        number = bisect_right(self._ends, at)
        if self._last is None or self._last[0] != number:
            self._last = (number, self.part(number))
        return self._last[1].row(at - self._ends[number] + self.sizes[number])

    def batches(self) -> Iterator[Batch]:
        """All rows in the order of the file, one part at a time."""
        yield from map(self.part, range(len(self.sizes)))
