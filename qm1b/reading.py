"""`qm1b.load`: rows of a dataset folder, a Parquet file or an extended XYZ file, as a stream.

Whatever the file's own units, fields have the names and atomic units of `schema.FIELDS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from . import store
from .batch import BY_NAME, OFFSETS, Batch, Record
from .errors import UserError

KINDS = "a folder of qm1b generate, a .parquet file, or an .extxyz or .extxyz.gz file"


class Dataset(ABC):
    """Rows that lie in a file or folder; nothing is read before it is asked for.

        for row in qm1b.load("data/mine"):
            row["energy"], row["positions"]  # hartree, bohr
        for batch in qm1b.load("mine.parquet", fields=["energy", "smiles"]).batches():
            batch["energy"]  # [R]

    Fields have the names and units of `schema.FIELDS`.
    """

    path: Path
    metadata: dict[str, Any]
    """The run's manifest as far as the file has it; may be empty."""

    def __init__(self, path: Path, fields: Sequence[str] | None) -> None:
        self.path = path
        self.fields = None if fields is None else list(fields)
        """Fields that are read; None for all that the file has."""

    @property
    def units(self) -> dict[str, str]:
        """The unit of each field that may be read."""
        names = BY_NAME if self.fields is None else self.fields
        return {name: BY_NAME[name].unit for name in names if name not in OFFSETS}

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
    """A dataset in parts whose sizes are known: it has a length and rows by number.

    The last part that was looked into stays in memory, so neighbours are cheap and leaps are not.
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

    def __getitem__(self, index: int) -> Record:
        """A row by its number from 0, negative ones from the end; raises IndexError."""
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"row {index} of a dataset with {len(self)} rows")
        number = bisect_right(self._ends, at)
        if self._last is None or self._last[0] != number:
            self._last = (number, self.part(number))
        return self._last[1].row(at - self._ends[number] + self.sizes[number])

    def batches(self) -> Iterator[Batch]:
        """All rows in the order of the file, a part at a time."""
        for number in range(len(self.sizes)):
            yield self.part(number)


class Folder(Indexed):
    """A folder of shards."""

    def __init__(self, path: Path, fields: Sequence[str] | None = None) -> None:
        super().__init__(path, fields)
        self.metadata = store.read_manifest(path)
        self.shards = store.shards(path)

    def part(self, number: int) -> Batch:
        """The rows of a shard."""
        return self._only(Batch(store.read_shard(self.shards[number])))

    @cached_property
    def sizes(self) -> list[int]:
        """Rows of each shard."""
        import h5py

        found = []
        for path in self.shards:
            try:
                with h5py.File(path, "r") as file:
                    data: Any = file["rows/line"]
                    found.append(len(data))
            except (OSError, KeyError) as error:
                raise UserError(
                    f"shard {path} is damaged ({error}); delete it and run again."
                ) from None
        return found

    def batches(self) -> Iterator[Batch]:
        """All rows in the order of the input, a shard at a time."""
        for number in range(len(self.shards)):
            yield self.part(number)


def load(path: str | Path, fields: Sequence[str] | None = None) -> Dataset:
    """Open a dataset without reading it.

    Args:
        path: the folder of a run, a `.parquet` file (ours or of QM1B's columns) or an `.extxyz`
            file, perhaps with `.gz`.
        fields: names of `schema.FIELDS` to read; None for all that the file has. Names that the
            file lacks are left out of the rows.

    Returns:
        A stream of rows in atomic units (`units` names them): iterate over it or over `batches()`.
        Folders and Parquet files also have a length and rows by number (`Indexed`).

    Raises:
        UserError: there is no such file or field, or its kind is not known.
    """
    path = Path(path)
    known = [name for name in BY_NAME if name not in OFFSETS]
    for name in fields or ():
        if name not in known:
            raise UserError(f"unknown field {name!r}: use some of {', '.join(known)}.")
    if not path.exists():
        raise UserError(f"{path} does not exist; give {KINDS}.")
    if path.is_dir():
        return Folder(path, fields)
    if path.suffix == ".parquet":
        from .formats.parquet import ParquetFile

        return ParquetFile(path, fields)
    from .formats.extxyz import ExtxyzFile, is_extxyz

    if is_extxyz(path):
        return ExtxyzFile(path, fields)
    raise UserError(f"{path} is of no known kind; give {KINDS}.")
