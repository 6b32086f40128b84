"""Which rows are worth recomputing: a random sample, and those that look like a wrong state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter

import numpy as np

from pyscf_ipu.units import HARTREE_TO_EV

from .batch import Batch, Record
from .schema import CONVERGED, Conformer

MIN_CONFORMERS = 3
OUTLIER_EV = 1.0
"""Conformers of small molecules lie within a few tenths of an eV; another SCF solution is farther
off."""
OUTLIER_SIGMAS = 5.0


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
        for i, deviation in outliers(batch):
            self.suspected += 1
            self.suspects.append(Picked(batch.row(i), keys[i], deviation))
        self.suspects.sort(key=lambda p: (-abs(p.deviation_ev), p.key))
        del self.suspects[self.size :]


def outliers(batch: Batch) -> Iterator[tuple[int, float]]:
    """Rows whose energy is far from the median of their molecule's, and how far in eV.

    Far is more than OUTLIER_EV and more than OUTLIER_SIGMAS times the spread, which is estimated
    by the median absolute deviation: a few wrong rows do not widen it. Rows that the generator
    itself has marked as suspect are among them, however far.
    """
    marked = batch["suspect"] != "" if "suspect" in batch else np.zeros(len(batch), dtype=bool)
    energy = batch["energy"] * HARTREE_TO_EV
    order = np.argsort(batch["line"], kind="stable")
    starts = np.flatnonzero(np.diff(batch["line"][order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        if len(rows) < MIN_CONFORMERS:
            continue
        deviation = energy[rows] - np.median(energy[rows])
        sigma = 1.4826 * np.median(np.abs(deviation))
        far = np.abs(deviation) > max(OUTLIER_EV, OUTLIER_SIGMAS * sigma)
        for i in np.flatnonzero(far | marked[rows]):
            yield int(rows[i]), float(deviation[i])


def _key(seed: int, line: int, conformer: int) -> int:
    digest = hashlib.blake2b(f"{seed} {line} {conformer}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
