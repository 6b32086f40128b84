"""A folder for a dataset hub: Parquet in parts, a small sample, the card and Croissant metadata.

`datasets.load_dataset(folder)` reads it, because the card's front matter says which files belong
to which configuration (`qm1b.report.card.write`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from qm1b.errors import UserError
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats import parquet
from qm1b.formats.columns import arrow_schema
from qm1b.report.card import write as card
from qm1b.report.card.facts import Statements
from qm1b.rows.batch import Batch
from qm1b.rows.identity import draw_key
from qm1b.storage import files, unfinished

ROWS_PER_PART = 1_000_000
"""Rows of a part, more or less: a part ends with a batch."""

SAMPLE_ROWS = 10_000
"""Rows of the sample: some 5 MB, and below 100 MB even if every molecule had 255 atoms."""


def write_hub(
    out: Path, batches: Iterator[Batch], source: ShardFolder, rows_per_part: int = ROWS_PER_PART
) -> list[Path]:
    """Write the rows of a run as a folder; returns the files in it besides the data.

    Args:
        out: an empty folder, one that does not exist yet, or one that was left unfinished.
        batches: the rows.
        source: the run.
        rows_per_part: rows after which a new part begins.

    Raises:
        UserError: the folder is not empty or cannot be written, or there are no rows.
    """
    with filling(out):
        return write_splits(out, {"": batches}, source, rows_per_part=rows_per_part)


def filling(out: Path) -> AbstractContextManager[None]:
    """Mark a folder as unfinished inside the block; raises as `qm1b.storage.unfinished.filling`."""
    return unfinished.filling(out, (card.DATA, card.SAMPLE))


def write_splits(
    out: Path,
    splits: Mapping[str, Iterator[Batch]],
    source: ShardFolder,
    rows_per_part: int = ROWS_PER_PART,
) -> list[Path]:
    """Write the rows of each split, by its name, as `write_hub` does; inside `filling`."""
    for name in (card.DATA, card.SAMPLE):
        files.make_folder(out / name)
    schema = arrow_schema(source.metadata)
    share = min(1.0, SAMPLE_ROWS / max(1, sum(source.sizes)))
    sample: list[Batch] = []
    for split, batches in splits.items():
        stream = _drawing(batches, share, sample)
        for number, first in enumerate(stream):
            part = out / card.part_name(number, split)
            _write(part, _until(rows_per_part, first, stream), schema)
    if not sample:
        raise UserError(f"{source.path} has no row that converged; there is nothing to publish")
    _write(out / card.SAMPLE_FILE, sample, schema)
    return card.write(source.path, out, Statements(source.path.resolve().name))


def _write(path: Path, batches: Iterable[Batch], schema: pa.Schema) -> None:
    files.atomic_write(path, lambda stream: parquet.write(stream, batches, schema))


def _until(rows: int, first: Batch, following: Iterator[Batch]) -> Iterator[Batch]:
    """`first` and what follows, until there are this many rows."""
    count = 0
    for batch in chain([first], following):
        yield batch
        count += len(batch)
        if count >= rows:
            return


def _drawing(batches: Iterator[Batch], share: float, sample: list[Batch]) -> Iterator[Batch]:
    """The batches that have rows; a share of all rows is added to the sample.

    Whole input lines are drawn, by their number. Even the smallest dataset gets a sample.
    """
    for batch in batches:
        if not len(batch):
            continue
        drawn = [draw_key("hub sample", line) < share * 2**64 for line in batch["line"].tolist()]
        chosen = np.flatnonzero(drawn) if any(drawn) or sample else np.arange(1)
        if len(chosen):
            sample.append(batch.take(chosen))
        yield batch
