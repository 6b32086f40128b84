"""Inputs that people have: which format a file is in, how many records it holds, and the records.

A record is what may become a molecule: a line of SMILES, a row of a table, an entry of an SDF, a
frame of an XYZ file. Records are numbered from 1 through the whole input, and are a function of its
bytes and of the settings alone, so that a second reading finds the same ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import UserError
from ..presets import RunSettings
from . import lines, sdf, tables, xyz
from .checks import UnitChecks, checked
from .container import Source, decoded, head_text
from .formats import AUTO, GEOMETRIES, NAMES, detect
from .records import Entry, InputSummary, Record

__all__ = ["GEOMETRIES", "InputSummary", "Record", "read", "resolve", "summarise"]


def resolve(path: Path, input_format: str = AUTO) -> str:
    """The format of an input: smiles, table, sdf or xyz, by content first and then by name.

    With auto, an archive is read to its end: all its members must be of one format.

    Raises:
        UserError: the input cannot be read, is an archive of several formats, or `input_format` is
            not one of those or auto.
    """
    if input_format != AUTO:
        if input_format not in NAMES:
            raise UserError(
                f"unknown input format {input_format!r}: use one of {AUTO}, {', '.join(NAMES)}."
            )
        return input_format
    found: str | None = None
    with Source(path) as source:
        for member in source.members():
            theirs = detect(member.name, head_text(member))
            if not source.is_archive:
                return theirs
            if found not in (None, theirs) and member.head.strip():
                raise UserError(
                    f"archive {path} holds files of several formats (first {found}, but {theirs} "
                    f"in {member.name}); unpack it, or say --input-format."
                )
            found = found or theirs
    return found or "smiles"


def summarise(path: Path, settings: RunSettings) -> InputSummary:
    """Count the records and hash the bytes; also proves that the whole input can be read.

    Raises:
        UserError: the input is missing, not readable, empty, damaged, or not in its format.
    """
    found = resolve(path, settings.input_format)
    with Source(path) as source:
        checks = UnitChecks(settings)
        for entry in _entries(source, found, settings):
            checks.add(entry)
        checks.close()
        skipped = tuple(source.skipped)
        summary = InputSummary(checks.n, source.sha256, found, skipped, checks.done)
    if checks.n == 0:
        raise UserError(f"input {path} is empty; it needs at least one molecule.")
    return summary


def read(
    path: Path,
    settings: RunSettings,
    limit: int | None = None,
    expected: InputSummary | None = None,
) -> Iterator[Record]:
    """The records of an input, at most `limit`; nothing is held but the current one.

    With `expected`, what an earlier pass learned, they must be the same ones; `limit` then is the
    end of a work unit or of the run.

    Bytes that are not text become U+FFFD; a record that cannot be one carries its reason.

    Raises:
        UserError: the input cannot be read to its end, or is not what was expected.
    """
    found = resolve(path, settings.input_format)
    with Source(path) as source:
        entries = _entries(source, found, settings)
        if expected is not None:
            n = limit or expected.n_lines
            entries = checked(entries, settings, expected, n, path)
        for number, entry in enumerate(itertools.islice(entries, limit), start=1):
            yield Record(number, *entry, format=found)


def _entries(source: Source, found: str, settings: RunSettings) -> Iterator[Entry]:
    """The records of all members, without their numbers."""
    readers: dict[str, Callable[..., Iterator[Entry]]] = {
        "smiles": lines.entries,
        "table": lambda text: tables.entries(text, settings.smiles_column),
        "sdf": sdf.entries,
        "xyz": xyz.entries,
    }
    for member in source.members():
        yield from readers[found](decoded(member))
