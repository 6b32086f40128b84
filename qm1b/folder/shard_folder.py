"""The shards of a run's folder as one dataset."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.manifest import Manifest
from qm1b.rows.batch import Batch
from qm1b.rows.dataset import Indexed


class ShardFolder(Indexed):
    """A folder of shards."""

    def __init__(self, path: Path, fields: Sequence[str] | None = None) -> None:
        super().__init__(path, fields)
        self.metadata = shards.read_metadata(path)
        self.manifest = Manifest.from_dict(self.metadata)
        self.shards = shards.shards(path)

    def part(self, number: int) -> Batch:
        """The rows of a shard."""
        return self._only(Batch(shards.read_shard(self.shards[number])))

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
                    f"shard {path} is damaged ({error}); delete it and run the same qm1b generate "
                    "again"
                ) from None
        return found

    def batches(self) -> Iterator[Batch]:
        """All rows in the order of the input, a shard at a time."""
        for number in range(len(self.shards)):
            yield self.part(number)
