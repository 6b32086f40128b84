"""What a first pass over an input learns, and whether a later pass finds the same records.

A run may last longer than its input stays unchanged. The first pass, which counts and hashes the
input, makes a checksum of each work unit; a later pass stops before it completes a changed unit.
"""

import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from qm1b.errors import UserError
from qm1b.inputs.records import Record
from qm1b.settings import RunSettings


class InputSummary(NamedTuple):
    """What a first pass over the input learned."""

    n_lines: int
    """Number of records."""
    sha256: str
    """Hash of the unpacked bytes."""
    format: str = "smiles"
    skipped: tuple[str, ...] = ()
    """Members of an archive whose names are not those of molecule files."""
    checks: Sequence[int] = ()
    """Checksum of the records of each work unit, by `UnitChecks`."""


class UnitChecks:
    """CRC-32 of the records of each work unit."""

    def __init__(self, settings: RunSettings) -> None:
        self._unit_lines, self._limit = settings.unit_lines, settings.limit
        self._running = 0
        self._open = False
        self.n = 0
        """Records so far."""
        self.done = array("I")  # 4 bytes per unit: those of a billion lines fit in memory

    def add(self, record: Record) -> None:
        """Take the next record; the last one of a unit, or of the run, closes its checksum."""
        text = "\0".join((record.smiles, record.block, record.reason, record.detail, record.id))
        self._running = zlib.crc32(text.encode("utf-8", "surrogatepass") + b"\n", self._running)
        self.n += 1
        self._open = True
        if self.n % self._unit_lines == 0 or self.n == self._limit:
            self.close()

    def close(self) -> None:
        """The input has ended, perhaps within a unit."""
        if self._open:
            self.done.append(self._running)
        self._running, self._open = 0, False


def checked(
    records: Iterable[Record], settings: RunSettings, expected: InputSummary, limit: int, path: Path
) -> Iterator[Record]:
    """The first `limit` records, which end a unit or the input.

    Yields the last record of a unit only if the whole unit is unchanged.

    Raises:
        UserError: the input has changed.
    """
    checks = UnitChecks(settings)
    for record in records:
        checks.add(record)
        if checks.n == expected.n_lines:
            checks.close()
        if checks.done and checks.done[-1] != expected.checks[len(checks.done) - 1]:
            break
        yield record
        if checks.n == limit:
            return
    raise UserError(
        f"input {path} has changed since this run began to read it, and existing shards come from "
        "the old input. Restore it and run the same command again, or start over with another "
        "--out."
    )
