"""Which rows are worth recomputing: a random sample, and those that look like a wrong state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter

import numpy as np

from . import molecules
from .batch import Batch, Record
from .schema import CONVERGED, Conformer
from .suspects import outliers


@dataclass(frozen=True)
class Picked:
    """A row to recompute."""

    row: Record
    key: int
    """Hash of seed, line and conformer: the rows with the least are the sample."""
    deviation_ev: float = 0.0
    """Of a suspect: its energy minus the median of the molecule's conformers."""

    @property
    def conformer(self) -> Conformer:
        """What was computed; positions in Bohr."""
        values = {f.name: self.row[f.name] for f in fields(Conformer)}
        return Conformer(**values | {"positions": self.row["positions"].astype(np.float64)})


@dataclass
class Picks:
    """Picks rows from shards that are seen once. Which rows does not depend on the shards' order.

    A molecule's conformers must lie in one batch, as they do in one shard.
    """

    size: int
    seed: int
    sample: list[Picked] = field(default_factory=list)
    """At most `size` converged rows, drawn uniformly."""
    suspects: list[Picked] = field(default_factory=list)
    """At most `size` outliers, the worst first."""
    suspected: int = 0
    """Outliers in all."""

    def add(self, batch: Batch) -> None:
        """Look at the rows of a shard."""
        good = (batch["status"] == CONVERGED) & np.isfinite(batch["energy"])
        batch = batch.take(np.flatnonzero(good))
        lines, conformers = batch["line"].tolist(), batch["conformer"].tolist()
        keys = [_key(self.seed, *place) for place in zip(lines, conformers, strict=True)]
        least = np.argsort(np.array(keys, dtype=np.uint64))[: self.size]
        self.sample += [Picked(batch.row(i), keys[i]) for i in least.tolist()]
        self.sample = sorted(self.sample, key=attrgetter("key"))[: self.size]
        for i, deviation in _suspects(batch):
            self.suspected += 1
            self.suspects.append(Picked(batch.row(i), keys[i], deviation))
        self.suspects.sort(key=lambda p: (-abs(p.deviation_ev), p.key))
        del self.suspects[self.size :]


def _suspects(batch: Batch) -> Iterator[tuple[int, float]]:
    """Rows that are outliers among their molecule's, or that the generator has marked as suspect,
    and how far from the median in eV."""
    marked = batch["suspect"] != "" if "suspect" in batch else np.zeros(len(batch), dtype=bool)
    molecule = molecules.numbers(batch)
    order = np.argsort(molecule, kind="stable")
    starts = np.flatnonzero(np.diff(molecule[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        far, deviation = outliers(batch["energy"][rows])
        for i in np.flatnonzero(far | marked[rows]):
            yield int(rows[i]), float(deviation[i])


def _key(seed: int, line: int, conformer: int) -> int:
    digest = hashlib.blake2b(f"{seed} {line} {conformer}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
