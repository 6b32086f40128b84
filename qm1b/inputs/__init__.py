"""Input files: their format, the number of their records, and the records.

A record is what may become a molecule: a line of SMILES, a row of a table, an entry of an SDF, a
frame of an XYZ file. Records are numbered from 1 through the whole input. They depend only on its
bytes and the settings, so that a second pass finds the same ones.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

from qm1b.errors import UserError
from qm1b.inputs import lines, tables
from qm1b.inputs.container import Source, decoded
from qm1b.inputs.detect import GEOMETRIES, ID_FIRST, REMARKS, opened, resolve
from qm1b.inputs.first_pass import FirstPass, InputSummary, checked
from qm1b.inputs.records import Record
from qm1b.settings import RunSettings

__all__ = ["GEOMETRIES", "REMARKS", "InputSummary", "Record", "read", "resolve", "summarise"]


def summarise(path: Path, settings: RunSettings) -> InputSummary:
    """Count, sample and hash the records; also proves that the whole input can be read.

    Raises:
        UserError: the input is missing, not readable, empty, damaged, or not in its format.
    """
    with opened(path, settings.input_format) as (source, kind):
        records = FirstPass(settings.limit)
        named = False
        for record in _records(source, kind, settings):
            records.add(record)
            named |= record.id != ""
        summary = records.summary(source.sha256, kind, tuple(source.skipped))
    if records.n == 0:
        raise UserError(f"input {path} is empty; it needs at least one molecule")
    if settings.id_column is not None and not named:
        raise UserError(
            f"no record of {path} has anything in {settings.id_column!r}; give --id-column the "
            "name of another column, data field or key, or leave it out"
        )
    return summary


def read(
    path: Path,
    settings: RunSettings,
    limit: int | None = None,
    expected: InputSummary | None = None,
) -> Iterator[Record]:
    """The records of an input, one at a time in memory.

    Bytes that are not text become U+FFFD; a record that cannot be a molecule carries its reason.

    Args:
        path: the input.
        settings: those that decide the format.
        limit: read at most this many records. With `expected` it must be the end of a work unit or
            of the run.
        expected: what an earlier pass learned: the records must be the same.

    Raises:
        UserError: the input cannot be read to its end, or is not what was expected.
    """
    with opened(path, expected.format if expected else settings.input_format) as (source, kind):
        records = _records(source, kind, settings)
        if expected is not None:
            records = checked(records, expected, limit or expected.n_lines, path=path)
        yield from itertools.islice(records, limit)


def _records(source: Source, kind: str, settings: RunSettings) -> Iterator[Record]:
    """The records of all members."""
    name = settings.id_column
    readers: dict[str, Callable[..., Iterator[Record]]] = {
        "smiles": lines.entries,
        ID_FIRST: lines.id_entries,
        "table": lambda text: tables.entries(text, settings.smiles_column, name),
        "sdf": lambda text: lines.sdf_entries(text, name),
        "xyz": lambda text: lines.frame_entries(text, name),
    }
    texts = (readers[kind](decoded(member)) for member in source.members())
    for number, record in enumerate(itertools.chain.from_iterable(texts), start=1):
        yield record._replace(number=number, format=kind)
