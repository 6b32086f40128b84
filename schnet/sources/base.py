"""What every kind of file offers: parts of known size, read one by one, and counts of drops."""

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from types import MappingProxyType

import numpy as np
from jaxtyping import Bool, Float32

from schnet.errors import UserError
from schnet.samples.samples import Samples, texts

BLOCK_BYTES = 1 << 16
BLOCKS = 64
"""A hash of a large file covers this many blocks, evenly spread from its beginning to its end."""

KEPT_ROWS = 200_000
"""Sources of no more rows stay in memory once they are read (some 100 MB), because splitting,
fitting references and training each read all rows."""

FITTED = "ri"
"""What qm1b's files call density fitting, in their column `jk`."""

Reasons = Counter[str]
"""Number of dropped rows by reason."""


class Source(ABC):
    """Molecules in a file or folder::

        for number in range(len(source.sizes)):
            samples = source.part(number)

    Threads may share one.
    """

    path: Path
    remarks: tuple[str, ...] = ()
    """What to say of the file."""
    free_atoms: Mapping[str, float] = MappingProxyType({})
    """Energies of free atoms in hartree by symbol, as far as the file has them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._dropped: dict[int, Reasons] = {}
        self._fitted: dict[int, Counter[bool]] = {}
        self._kept: dict[int, Samples] = {}

    @cached_property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Rows of each part before any is dropped; found without reading the rows."""

    @property
    def units(self) -> dict[str, str]:
        """Unit of each column in the file; the samples are in atomic units."""
        return {}

    def fingerprint(self) -> str:
        """A hash that changes with the content; by default `digest` of the file."""
        return digest(self.path)

    @abstractmethod
    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """Read a part: for training the good rows and counts of the dropped ones, for a prediction
        all rows, of which some have a reason why they cannot be predicted."""

    def part(self, number: int) -> Samples:
        """The rows of a part, from 0, in the order of the file, as of `read_part`; raises UserError
        if the file is damaged."""
        with self._lock:
            if number in self._kept:
                return self._kept[number]
            samples, self._dropped[number] = self.read_part(number)
            if sum(self.sizes) <= KEPT_ROWS:
                self._kept[number] = samples
        return samples

    def parts(self) -> Iterator[Samples]:
        """All parts one after another."""
        return map(self.part, range(len(self.sizes)))

    @property
    def dropped(self) -> Reasons:
        """Why rows of the parts read so far were dropped, and how many."""
        return sum(self._dropped.values(), Reasons())

    @property
    def fitted(self) -> Counter[bool]:
        """How many of the rows read so far say that density fitting computed their electron
        repulsion (True), and how many do not; nothing where no file could say it."""
        return sum(self._fitted.values(), Counter())


class Several(Source):
    """Several files as one source: the parts of the first, then those of the next."""

    def __init__(self, path: Path, sources: Sequence[Source]) -> None:
        super().__init__(path)
        self.sources = tuple(sources)
        self.free_atoms = dict(set.intersection(*({*s.free_atoms.items()} for s in sources)))

    @cached_property
    def sizes(self) -> list[int]:
        """Rows of the parts of all sources."""
        return [size for source in self.sources for size in source.sizes]

    @cached_property
    def _places(self) -> list[tuple[Source, int]]:
        return [(source, i) for source in self.sources for i in range(len(source.sizes))]

    @property
    def units(self) -> dict[str, str]:
        """Units of all columns; both units where two sources differ."""
        units: dict[str, str] = {}
        for source in self.sources:
            for name, unit in source.units.items():
                known = units.get(name, unit).split(" or ")
                units[name] = " or ".join(dict.fromkeys([*known, unit]))
        return units

    @property
    def fitted(self) -> Counter[bool]:
        """Say which rows have density fitting (`Source.fitted`)."""
        return sum((source.fitted for source in self.sources), Counter())

    def fingerprint(self) -> str:
        """A hash of the fingerprints of all sources, in their order."""
        prints = "\n".join(source.fingerprint() for source in self.sources)
        return hashlib.sha256(prints.encode()).hexdigest()

    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """Read one part; keys begin with the name of the file."""
        source, local = self._places[number]
        samples, reasons = source.read_part(local)
        keys = texts(f"{source.path.name} {key}" for key in samples.keys)
        return replace(samples, keys=keys), reasons


def kept(
    samples: Samples, tests: dict[str, Bool[np.ndarray, " R"]], wants_target: bool
) -> tuple[Samples, Reasons]:
    """Drop rows without atoms, rows that fail a test, and rows that are not finite.

    For a prediction every row stays, and those that fail get the reason instead.

    Args:
        samples: rows of a part.
        tests: which rows pass, by the reason for dropping the others. A row counts for the first
            test that it fails.
        wants_target: drop rows, also those whose target is not finite; else this is a prediction.
    """
    tests = {"no atoms": samples.sizes > 0, **tests}
    tests["position not finite"] = _all_finite(samples.positions_bohr, samples)
    if wants_target:
        tests["target not finite"] = np.isfinite(samples.targets)
        if samples.forces is not None:
            tests["forces not finite"] = _all_finite(samples.forces, samples)
    why = samples.reasons.copy()
    reasons = Reasons()
    for reason, passed in tests.items():
        failed = (why == "") & ~passed
        if failed.any():
            reasons[reason] = int(failed.sum())
        why[failed] = reason
    if not wants_target:
        return replace(samples, reasons=why), Reasons()
    good = why == ""
    return (samples if good.all() else samples.take(np.flatnonzero(good))), reasons


def _all_finite(
    of_atoms: Float32[np.ndarray, "atoms 3"], samples: Samples
) -> Bool[np.ndarray, " R"]:
    """Which rows have three finite numbers for every atom."""
    bad = ~np.isfinite(of_atoms).all(axis=1)
    starts = samples.atom_offset[:-1]
    return np.add.reduceat(np.append(bad, False), starts, dtype=np.int64) == 0


def digest(path: Path) -> str:
    """A hash of a file's size and content; raises UserError if it cannot be read.

    Files of up to BLOCKS * BLOCK_BYTES (4 MiB) are hashed whole. Of larger ones only blocks spread
    over the file are, so that 10 GB need not be read: a change between the blocks that keeps the
    size goes unnoticed.
    """
    sha = hashlib.sha256()
    try:
        size = path.stat().st_size
        sha.update(f"{size}\n".encode())
        with open(path, "rb") as stream:
            if size <= BLOCKS * BLOCK_BYTES:
                sha.update(stream.read())
            else:
                for start in np.linspace(0, size - BLOCK_BYTES, BLOCKS).astype(int).tolist():
                    stream.seek(start)
                    sha.update(stream.read(BLOCK_BYTES))
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from None
    return sha.hexdigest()
