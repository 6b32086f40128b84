"""QM1B's own layout: many Parquet files for training, one for validation, ten columns.

A molecule is on one side with all its conformers, as in `qm1b.convert.split`. The conformers of a
molecule for training are spread over all parts, so that each part is a sample of the whole, which
QM1B's loader expects when it takes the same number of rows from every file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from pyscf_ipu.base.host.temporaries import publish, temporary
from qm1b.convert.export import is_good
from qm1b.convert.split import Fractions, side
from qm1b.errors import UserError
from qm1b.folder import completeness
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats import parquet
from qm1b.formats.columns import arrow_schema
from qm1b.rows import identity
from qm1b.rows.batch import Batch
from qm1b.storage import files, unfinished

PUBLISHED_COLUMNS = 10
"""The first of our columns are QM1B's."""

VALIDATION = "qm1b_validation.parquet"
ROWS_IN_MEMORY = 1 << 20
"""Of all parts together; a row group of a part has its share of them."""

MOST_PARTS = 1000
"""Their numbers have three digits, and all of them are open at the same time."""


@dataclass(frozen=True)
class PublishedParts:
    """What was written."""

    train_rows: int
    valid_rows: int
    left_out: int
    """Rows that are not converged or not finite."""
    files: int
    valid_asked: int = 0

    @property
    def warning(self) -> str:
        """What is wrong with the division; empty if nothing is."""
        if not self.train_rows:
            which = "training"
        elif self.valid_asked and not self.valid_rows:
            which = "validation"
        else:
            return ""
        return (
            f"no row is for {which}: a molecule is on one side with all its conformers, so few "
            "molecules cannot be divided as finely as --valid-rows asks; give another number"
        )


def export_parts(
    folder: Path, out: Path, parts: int, valid_rows: int = 0, seed: int = 0
) -> PublishedParts:
    """Write the converged rows of a run as QM1B is published.

    Args:
        folder: the `--out` of a run.
        out: an empty folder, one that does not exist yet, or one that was left unfinished.
        parts: number of files for training.
        valid_rows: about this many rows for validation, in whole molecules.
        seed: another seed gives another division.

    Raises:
        UserError: no run there, a lost shard, wrong numbers, or `out` cannot be written.
    """
    source = ShardFolder(folder)
    rows = sum(source.sizes)
    if not 1 <= parts <= MOST_PARTS:
        raise UserError(f"--parts is {parts}: give 1 to {MOST_PARTS}")
    if not 0 <= valid_rows < max(rows, 1):
        raise UserError(f"--valid-rows is {valid_rows}: the run has {rows} rows; give fewer")
    completeness.notice(source)  # raises if a shard is lost
    names = [f"part_{number:03d}.parquet" for number in range(MOST_PARTS)]
    paths = [out / name for name in (*names[:parts], VALIDATION)]
    whole = arrow_schema(source.metadata)
    first = [whole.field(i) for i in range(PUBLISHED_COLUMNS)]
    schema = pa.schema(first, metadata=whole.metadata)
    filling = unfinished.filling(out, (*names, VALIDATION))
    with filling, _files(paths) as streams, ExitStack() as stack:
        writers = [_Writer(stream, schema, ROWS_IN_MEMORY // len(paths)) for stream in streams]
        for writer in writers:
            stack.enter_context(writer.file)
        share = valid_rows / max(rows, 1)
        left_out = 0
        for batch in source.batches():
            good = is_good(batch)
            left_out += int((~good).sum())
            for number, some in _by_part(batch.take(np.flatnonzero(good)), parts, share, seed=seed):
                writers[number].add(some)
        for writer in writers:
            writer.flush()
    written = [writer.rows for writer in writers]
    return PublishedParts(
        sum(written[:-1]), written[-1], left_out, files=len(paths), valid_asked=valid_rows
    )


def _by_part(batch: Batch, parts: int, share: float, seed: int) -> Iterator[tuple[int, Batch]]:
    """The rows of a batch, by the number of their part; validation comes after the last part."""
    if not len(batch):
        return
    names, fractions = identity.names(batch).astype(str), Fractions(1 - share, share, 0.0)
    sides = {name: side(name, seed, fractions) for name in set(names.tolist())}
    to_valid = np.array([sides[name] == "valid" for name in names.tolist()])
    places = zip(names.tolist(), batch["conformer"].tolist(), strict=True)
    part = np.array([identity.draw_key(seed, name, number) % parts for name, number in places])
    part[to_valid] = parts
    for number in np.unique(part):
        yield int(number), batch.take(np.flatnonzero(part == number))


@contextmanager
def _files(paths: Sequence[Path]) -> Iterator[list[IO[bytes]]]:
    """Files that get their names when all of them are whole; raises UserError if one cannot."""
    at = paths[0]
    try:
        with ExitStack() as stack:
            streams = [stack.enter_context(temporary(path)) for path in paths]
            yield streams
            for stream, path in zip(streams, paths, strict=True):
                at = path
                publish(stream, path)
    except OSError as error:
        raise files.not_written(at, error) from None


class _Writer:
    """One file."""

    def __init__(self, stream: IO[bytes], schema: pa.Schema, group: int) -> None:
        self.rows, self._schema, self._group = 0, schema, max(1, group)
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self.file = parquet.writer_of(stream, schema)

    def add(self, batch: Batch) -> None:
        """Take some rows."""
        self._waiting.append(parquet.table(batch, self._schema))
        self._waiting_rows += len(batch)
        self.rows += len(batch)
        if self._waiting_rows >= self._group:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait."""
        if self._waiting:
            self.file.write_table(pa.concat_tables(self._waiting).combine_chunks())
        self._waiting, self._waiting_rows = [], 0
