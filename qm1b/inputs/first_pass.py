"""What a first pass over an input learns, and whether a later pass finds the same records.

A run may last longer than its input stays unchanged. The first pass, which counts and hashes the
input, keeps checksums of its beginnings and a sample of its records; a later pass stops before it
completes a changed work unit.
"""

import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from qm1b.errors import UserError
from qm1b.inputs.records import Record

MOST_CHECKS = 2**24
"""Checksums in memory, of 4 bytes; a longer input has one for every 2, 4, 8, ... records."""
MOST_SAMPLED = 1024
"""Records of a sample."""


class InputSummary(NamedTuple):
    """What a first pass over the input learned."""

    n_lines: int
    """Number of records."""
    sha256: str
    """Hash of the unpacked bytes."""
    format: str = "smiles"
    skipped: tuple[str, ...] = ()
    """Members of an archive whose names are not those of molecule files."""
    sample: Sequence[Record] = ()
    """Records at equal distances, the first among them; all of a small input, up to the limit."""
    checks: Sequence[int] = ()
    """Checksums of the first `stride`, 2 `stride`, ... records; work units end at such places."""
    stride: int = 1
    ends: Mapping[int, int] = {}
    """Checksums where the run and the input end, by the number of records."""

    def checksum(self, n: int) -> int | None:
        """The checksum of the first n records, if there is one."""
        if n % self.stride == 0:
            return self.checks[n // self.stride - 1]
        return self.ends.get(n)


class FirstPass:
    """Counts records, and keeps checksums and samples of them in bounded memory."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self.n = 0
        """Records so far."""
        self._running = 0
        self._checks, self._stride = array("I"), 1
        self._sample: list[Record] = []
        self._sample_stride = 1
        self._ends: dict[int, int] = {}

    def add(self, record: Record) -> None:
        """Take the next record."""
        if self.n % self._sample_stride == 0 and (self._limit is None or self.n < self._limit):
            self._sample.append(record)
            if len(self._sample) > MOST_SAMPLED:
                del self._sample[1::2]
                self._sample_stride *= 2
        self._running = _checksum(record, self._running)
        self.n += 1
        if self.n == self._limit:
            self._ends[self.n] = self._running
        if self.n % self._stride == 0:
            self._checks.append(self._running)
            if len(self._checks) > MOST_CHECKS:
                self._checks = self._checks[1::2]
                self._stride *= 2

    def summary(self, sha256: str, kind: str, skipped: tuple[str, ...]) -> InputSummary:
        """What was learned of the whole input."""
        ends = self._ends | {self.n: self._running}
        return InputSummary(
            self.n, sha256, kind, skipped=skipped, sample=self._sample, checks=self._checks,
            stride=self._stride, ends=ends,
        )  # fmt: skip


def checked(
    records: Iterable[Record], expected: InputSummary, limit: int, path: Path
) -> Iterator[Record]:
    """The first `limit` records, which end a unit or the input.

    Yields the last record of a unit only if the input is unchanged up to there.

    Raises:
        UserError: the input has changed.
    """
    running = 0
    for n, record in enumerate(records, start=1):
        running = _checksum(record, running)
        if expected.checksum(n) not in (running, None):
            break
        yield record
        if n == limit:
            return
    raise UserError(
        f"input {path} has changed since this run began to read it, and existing shards come from "
        "the old input. Restore it and run the same command again, or start over with another "
        "--out."
    )


def _checksum(record: Record, running: int) -> int:
    """The CRC-32 of records, from that of those before the last."""
    text = "\0".join((record.smiles, record.block, record.reason, record.detail, record.id))
    return zlib.crc32(text.encode("utf-8", "surrogatepass") + b"\n", running)
