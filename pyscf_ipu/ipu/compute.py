"""Compute sets: what every tile does between two exchanges.

A tile's time is its launch plus six times its busiest worker, because the six workers of a tile
take turns at issuing one instruction per cycle.  The set takes as long as its slowest tile.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pyscf_ipu.ipu.layout import Place
from pyscf_ipu.ipu.popops import BINARY_LOOP, BINARY_START, VECTOR, WORKER_CYCLES
from pyscf_ipu.ipu.profile import Cycles, Step
from pyscf_ipu.ipu.quantity import weakest
from pyscf_ipu.ipu.target import Target


@dataclass
class ComputeSet:
    """Vertices of one or several kinds that run side by side."""

    target: Target
    n_tiles: int
    stage: str
    names: list[str] = field(default_factory=list)
    vertices: int = 0
    how: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        workers = int(self.target.num_worker_contexts)
        self.low = np.zeros((self.n_tiles, workers))
        self.high = np.zeros((self.n_tiles, workers))

    def add_vertices(
        self, name: str, tiles: tuple[int, ...], cycles: tuple[float, float], shared: bool,
        how: str, source: str,
    ) -> None:  # fmt: skip
        """A vertex on every entry of `tiles`: the least busy worker takes it, or all share it."""
        self._note(name, len(tiles), how, source)
        low, high = cycles
        counts = np.bincount(tiles, minlength=self.n_tiles)
        workers = self.low.shape[1]
        if shared:
            self.low += counts[:, None] * low / workers
            self.high += counts[:, None] * high / workers
            return
        for k in range(int(counts.max(initial=0))):
            busy = np.flatnonzero(counts > k)
            idle = np.argmin(self.low[busy], axis=1)
            self.low[busy, idle] += low
            self.high[busy, idle] += high

    def step(self) -> tuple[Step, np.ndarray]:
        """The step and the low cycles of every tile."""
        launch = float(self.target.supervisor_launch_cycles)
        workers = self.low.shape[1]
        busiest, slowest = self.low.max(axis=1), self.high.max(axis=1)
        used = busiest > 0
        low = np.where(used, launch + workers * busiest, 0.0)
        high = np.where(used, launch + workers * slowest, 0.0)
        name = self.names[0] if len(self.names) == 1 else _common(self.names)
        source = "; ".join(sorted(self.sources))
        how = weakest(*self.how)
        return compute_step(name, self.stage, low, high, self.vertices, how, source), low

    def _note(self, name: str, vertices: int, how: str, source: str) -> None:
        if name not in self.names:
            self.names.append(name)
        self.vertices += vertices
        self.how.add(how)
        self.sources.add(source)


class ElementwiseSet(ComputeSet):
    """One fused elementwise vertex per worker, as `popops::map` makes it: elements are loaded and
    stored once, however many operations there are."""

    place: Place

    def start(self, place: Place) -> ElementwiseSet:
        self.place = place
        used = place.elements > 0
        self._per_worker = np.ceil(place.elements / self.low.shape[1])
        fixed = np.where(used, BINARY_START + BINARY_LOOP * np.ceil(self._per_worker / VECTOR), 0.0)
        self.low += fixed[:, None]
        self.high += fixed[:, None]
        self.vertices = int(used.sum())
        return self

    def add_operation(self, name: str) -> None:
        cost = WORKER_CYCLES[name]
        cycles = np.ceil(self._per_worker / cost.elements) * cost.cycles
        self.low += cycles[:, None]
        self.high += cycles[:, None]
        self._note(name, 0, cost.how, cost.source)


def compute_step(
    name: str,
    stage: str,
    low: np.ndarray,
    high: np.ndarray,
    vertices: int,
    how: str,
    source: str,
) -> Step:
    """A compute set from the cycles of every tile: [n_tiles] each."""
    largest = float(low.max(initial=0.0))
    return Step(
        "compute",
        name,
        stage,
        Cycles(largest, float(high.max(initial=0.0))),
        tiles=int((low > 0).sum()),
        vertices=vertices,
        balance=float(low.mean() / largest) if largest else 1.0,
        how=how,
        source=source,
    )


def _common(names: list[str]) -> str:
    """One name for several: what they start with, or how many there are."""
    prefix = names[0]
    for name in names[1:]:
        while not name.startswith(prefix):
            prefix = prefix[:-1]
    prefix = prefix.rstrip("_ ")
    return f"{prefix}*" if len(prefix) > 2 else f"{names[0]} +{len(names) - 1}"
