"""The rows worth recomputing: a random sample, and rows that may belong to a wrong state."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np

from qm1b.rows import identity
from qm1b.rows.batch import Batch, Record, conformer_of
from qm1b.rows.identity import draw_key
from qm1b.rows.schema import CONVERGED, Conformer
from qm1b.rows.suspects import OUTLIER, outliers


@dataclass(frozen=True)
class Picked:
    """A row to recompute."""

    row: Record
    key: int
    """From seed, line and conformer; the rows with the least keys are the sample."""
    deviation_ev: float = 0.0
    """Energy of a suspect minus the median of the molecule's conformers; else 0."""

    @property
    def place(self) -> tuple[int, int]:
        """Line and conformer: the row's identity."""
        return self.row["line"], self.row["conformer"]

    @property
    def conformer(self) -> Conformer:
        """The conformer of the row; positions in Bohr."""
        return conformer_of(self.row)

    @property
    def form(self) -> str:
        """How its electron repulsion was computed: exact or ri."""
        return self.row.get("jk") or "exact"


@dataclass
class Picks:
    """Picks rows from shards that are read once. The order of the shards does not matter.

    The conformers of a molecule must be in one batch, as they are in one shard.
    """

    size: int
    seed: int
    sample: list[Picked] = field(default_factory=list)
    """At most `size` converged rows, drawn uniformly."""
    suspects: list[Picked] = field(default_factory=list)
    """At most `size` outliers, the worst first."""
    suspected: int = 0
    """Number of all outliers."""

    def add(self, batch: Batch) -> None:
        """Pick from the rows of a shard."""
        good = (batch["status"] == CONVERGED) & np.isfinite(batch["energy"])
        batch = batch.take(np.flatnonzero(good))
        lines, conformers = batch["line"].tolist(), batch["conformer"].tolist()
        keys = [draw_key(self.seed, *place) for place in zip(lines, conformers, strict=True)]
        least = np.argsort(np.array(keys, dtype=np.uint64))[: self.size]
        self.sample += [Picked(batch.row(i), keys[i]) for i in least.tolist()]
        self.sample = sorted(self.sample, key=attrgetter("key"))[: self.size]
        for i, deviation in _suspects(batch):
            self.suspected += 1
            self.suspects.append(Picked(batch.row(i), keys[i], deviation))
        self.suspects.sort(key=_most_suspect_first)
        del self.suspects[self.size :]


def _most_suspect_first(picked: Picked) -> tuple[bool, float, int]:
    """Those that are suspect by themselves, then those that are farthest from their mates."""
    by_itself = picked.row.get("suspect", "") not in ("", OUTLIER)
    return not by_itself, -abs(picked.deviation_ev), picked.key


def _suspects(batch: Batch) -> Iterator[tuple[int, float]]:
    """Outliers among the conformers of a molecule, and rows that the generator marked as suspect.

    Yields:
        The number of a row, and its distance from the median in eV.
    """
    reasons = batch["suspect"] if "suspect" in batch else np.full(len(batch), "")
    marked, alone = reasons != "", (reasons != "") & (reasons != OUTLIER)
    molecule = identity.numbers(batch)
    order = np.argsort(molecule, kind="stable")
    starts = np.flatnonzero(np.diff(molecule[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        far, deviation = outliers(batch["energy"][rows], ~alone[rows])
        for i in np.flatnonzero(far | marked[rows]):
            yield int(rows[i]), float(deviation[i])
