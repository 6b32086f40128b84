"""What every kind of file gives: parts of known size, read one at a time, and what was left out."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from threading import Lock

import numpy as np
from jaxtyping import Bool

from ..errors import UserError
from ..samples import Samples

BLOCK_BYTES = 1 << 16
BLOCKS = 64
"""What of a file is hashed: this many blocks, spread evenly, the first and the last among them."""

KEPT_ROWS = 200_000
"""Sources of no more rows stay in memory once they have been read (some 100 MB): splits, references
and training each go through them."""

Reasons = Counter[str]
"""Why rows were left out, and how many for each reason."""


class Source(ABC):
    """Molecules that lie in a file or folder.

        for number in range(len(source.sizes)):
            samples = source.part(number)

    Threads may share one.
    """

    path: Path

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._dropped: dict[int, Reasons] = {}
        self._kept: dict[int, Samples] = {}

    @cached_property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Rows in each part before any is left out; found without reading the rows."""

    @property
    @abstractmethod
    def units(self) -> dict[str, str]:
        """The unit that each column has in the file; inside all are atomic."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A hash that another content would change."""

    @abstractmethod
    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """The good rows of a part, and why others were left out."""

    def part(self, number: int) -> Samples:
        """The good rows of a part, from 0, in the order of the file.

        Raises:
            UserError: the file is damaged, or not what its beginning promised.
        """
        with self._lock:
            if number in self._kept:
                return self._kept[number]
            samples, self._dropped[number] = self.read_part(number)
            if sum(self.sizes) <= KEPT_ROWS:
                self._kept[number] = samples
        return samples

    def parts(self) -> Iterator[Samples]:
        """All of them, one after another."""
        return map(self.part, range(len(self.sizes)))

    @property
    def dropped(self) -> Reasons:
        """Why rows were left out of the parts that have been read so far, and how many."""
        return sum(self._dropped.values(), Reasons())


def kept(
    samples: Samples, tests: dict[str, Bool[np.ndarray, " R"]], wants_target: bool
) -> tuple[Samples, Reasons]:
    """Leave rows out: those that fail a test, with the first one that they fail as the reason, and
    those with a position (or a target that is wanted) that is not finite."""
    finite = np.isfinite(samples.positions_bohr).all(axis=1)
    bad_atoms = np.add.reduceat(np.append(~finite, False), samples.atom_offset[:-1], dtype=np.int64)
    everything = {"no atoms": samples.sizes > 0, **tests, "position not finite": bad_atoms == 0}
    if wants_target:
        everything["target not finite"] = np.isfinite(samples.targets)
    good = np.ones(len(samples), dtype=bool)
    reasons = Reasons()
    for reason, passed in everything.items():
        failed = good & ~passed
        if failed.any():
            reasons[reason] = int(failed.sum())
        good &= passed
    return (samples if good.all() else samples.take(np.flatnonzero(good))), reasons


def digest(path: Path) -> str:
    """A hash of a file's size and of blocks spread over it, its beginning and end included.

    Files of up to BLOCKS * BLOCK_BYTES (4 MiB) are hashed whole. In larger ones a change between
    the blocks that keeps the size goes unnoticed, which is the price of not reading 10 GB.

    Raises:
        UserError: the file cannot be read.
    """
    found = hashlib.sha256()
    try:
        size = path.stat().st_size
        found.update(f"{size}\n".encode())
        with open(path, "rb") as stream:
            if size <= BLOCKS * BLOCK_BYTES:
                found.update(stream.read())
            else:
                for start in np.linspace(0, size - BLOCK_BYTES, BLOCKS).astype(int).tolist():
                    stream.seek(start)
                    found.update(stream.read(BLOCK_BYTES))
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).") from None
    return found.hexdigest()
