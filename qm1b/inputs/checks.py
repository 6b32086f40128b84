"""Whether a later pass over an input finds the records that the first one found.

A run may last longer than its input stays as it is. A checksum for each work unit, made when the
input is counted and hashed, lets a later pass stop before it gives out a unit that is another one.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import UserError
from ..presets import RunSettings
from .records import Entry, InputSummary


class UnitChecks:
    """CRC-32 of the records of one work unit after the other."""

    def __init__(self, settings: RunSettings) -> None:
        self._unit_lines, self._limit = settings.unit_lines, settings.limit
        self._running = 0
        self._open = False
        self.n = 0
        """Records so far."""
        self.done = array("I")  # 4 bytes a unit: a billion lines have room in memory

    def add(self, entry: Entry) -> None:
        """Take the next record; the last one of a unit, or of the run, closes its checksum."""
        text = "\0".join(entry).encode("utf-8", errors="surrogatepass")
        self._running = zlib.crc32(text + b"\n", self._running)
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
    entries: Iterable[Entry], settings: RunSettings, expected: InputSummary, limit: int, path: Path
) -> Iterator[Entry]:
    """The first `limit` entries, which end a unit or the input.

    The last one of a unit is given out only if the whole unit is what it was.

    Raises:
        UserError: the input is not what it was.
    """
    checks = UnitChecks(settings)
    for entry in entries:
        checks.add(entry)
        if checks.n == expected.n_lines:
            checks.close()
        if checks.done and checks.done[-1] != expected.checks[len(checks.done) - 1]:
            raise _changed(path)
        yield entry
        if checks.n == limit:
            return
    raise _changed(path)


def _changed(path: Path) -> UserError:
    return UserError(
        f"input {path} has changed since this run began to read it; the shards that are written "
        "are of what it was. Give that back and go on with the same command, or begin anew with "
        "another --out."
    )
