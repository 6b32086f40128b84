"""Compute sets: what every tile does between two exchanges.

The workers of a tile take turns at issuing one instruction per cycle.  So a tile's time is its
launch plus the number of workers times its busiest worker, and the set takes as long as its
slowest tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from types import MappingProxyType
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.ipu.chip.popops import (
    BINARY_LOOP,
    BINARY_START,
    HALF_BINARY_START,
    HALF_VECTOR,
    VECTOR,
    op_cost,
)
from pyscf_ipu.ipu.chip.quantity import weakest
from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.profile.data import Cycles, Origin, Step
from pyscf_ipu.ipu.steps.places import Place
from pyscf_ipu.ipu.vertices.trip_counts import Counts, Path
from pyscf_ipu.numerics.arrays import HostArray


class PricedStep(NamedTuple):
    """A step of the program, and the low cycles [n_tiles] of every tile if it is a compute set."""

    step: Step
    load: np.ndarray = np.zeros(0)
    measure: Path = ()
    """Where the counts have its `ComputeSet.measured`, if its cycles depend on data."""


Parts = Mapping[Path, tuple[float, float, float]]
"""What one more of each count costs: low and high cycles of a worker, floating-point operations."""


class Work(NamedTuple):
    """What the vertices of a compute set do, on all tiles together."""

    flops: float = 0.0
    memory_bytes: float = 0.0
    """Loaded and stored."""
    loaded: float = 0.0
    """Of one vertex, and what it stores, if its cycles leave out the time of either."""
    stored: float = 0.0
    parts: Parts = MappingProxyType({})
    """Of one vertex, which runs each as often as its own counts say."""

    def plus(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.memory_bytes + other.memory_bytes)


NO_WORK = Work()


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
    work: Work = NO_WORK
    counted: list[tuple[Parts, np.ndarray, np.ndarray | None]] = field(default_factory=list)
    """Vertices with parts: on which tiles, and on which workers or None if all share them."""

    def __post_init__(self) -> None:
        workers = int(self.target.num_worker_contexts)
        self.cycles = np.zeros((2, self.n_tiles, workers))  # low and high
        self._dealt = np.zeros((self.n_tiles, workers))
        """Low cycles of a worker if each of its counts were one."""
        self.moving = np.zeros(self.n_tiles)
        """Cycles in which a tile loads the operands of its vertices, or stores their results."""

    def add_vertices(
        self,
        name: str,
        tiles: tuple[int, ...],
        cycles: tuple[float, float],
        shared: bool,
        origin: Origin,
        work: Work = NO_WORK,
    ) -> None:
        """Add a vertex of these low and high worker cycles on every entry of `tiles`.

        Of vertices on one tile each goes to the least busy worker, before it is known how often it
        runs its parts; if `shared`, all workers share each.  `work` is that of all these vertices.
        Code loads and stores beside the arithmetic, so a tile takes as long as the longest of the
        three.
        """
        self._note(name, len(tiles), origin)
        self.work = self.work.plus(work)
        each = np.array(cycles)[:, None]
        counts = np.bincount(tiles, minlength=self.n_tiles)
        load = work.loaded / float(self.target.interleaved_load_bytes_per_cycle)
        store = work.stored / float(self.target.store_bytes_per_cycle)
        self.moving += counts * max(load, store)
        on, workers = np.array(tiles, int), None
        if shared:
            self.cycles += (counts * each)[:, :, None] / self.cycles.shape[2]
        else:
            one_run = cycles[0] + sum(low for low, *_ in work.parts.values())
            order = np.argsort(on, kind="stable")
            starts = np.cumsum(counts) - counts
            turn = np.arange(len(on)) - starts[on[order]]  # the first of its tile, the second, ...
            workers = np.zeros(len(on), int)
            for k in range(int(counts.max(initial=0))):
                some = order[turn == k]
                workers[some] = np.argmin(self._dealt[on[some]], axis=1)
                self._dealt[on[some], workers[some]] += one_run
                self.cycles[:, on[some], workers[some]] += each
        if work.parts:
            self.counted.append((work.parts, on, workers))

    def measured(self, counts: Counts) -> Array:
        """Low and high cycles, floating-point operations, and the low cycles of every tile."""
        cycles, flops = jnp.asarray(self.cycles, jnp.float32), jnp.float32(self.work.flops)
        for parts, tiles, workers in self.counted:
            runs = jnp.stack([counts[p].reshape(len(tiles), -1).sum(1) for p in parts])
            costs = np.array(list(parts.values()), np.float32).T
            low, high, operations = (c @ runs.astype(jnp.float32) for c in costs)
            each, flops = jnp.stack([low, high]), flops + operations.sum()
            if workers is None:
                cycles = cycles.at[:, tiles].add(each[:, :, None] / cycles.shape[2])
            else:
                cycles = cycles.at[:, tiles, workers].add(each)
        tiles = self._of_tiles(cycles)
        return jnp.concatenate([tiles.max(1), flops[None], tiles[0]])

    def _of_tiles(self, cycles: HostArray) -> HostArray:
        """Cycles [low and high, n_tiles] of the tiles from those of their workers."""
        launch = float(self.target.supervisor_launch_cycles)
        busiest = cycles.max(axis=2)
        busy = (cycles.shape[2] * busiest).clip(self.moving)
        where = np.where if isinstance(cycles, np.ndarray) else jnp.where
        return where(busiest[0] > 0, launch + busy, 0.0)

    def step(self) -> PricedStep:
        """The whole set as one step."""
        each = np.asarray(self._of_tiles(self.cycles))
        origin, n = (weakest(*self.how), "; ".join(sorted(self.sources))), self.vertices
        name = _common(self.names)
        return compute_step(name, self.stage, each, vertices=n, origin=origin, work=self.work)

    def _note(self, name: str, vertices: int, origin: Origin) -> None:
        if name not in self.names:
            self.names.append(name)
        self.vertices += vertices
        self.how.add(origin[0])
        self.sources.add(origin[1])


class ElementwiseSet(ComputeSet):
    """One fused elementwise vertex per worker, as `popops::map` makes it.

    Elements are loaded and stored once, however many operations there are.
    """

    place: Place

    def start(self, place: Place, half: bool = False) -> ElementwiseSet:
        """Load and store the elements at `place`: float16 if `half`, else of four bytes."""
        self.place = place
        self.operations: list[str] = []
        used = place.elements > 0
        self._per_worker = np.ceil(place.elements / self.cycles.shape[2])
        start, vector = (HALF_BINARY_START, HALF_VECTOR) if half else (BINARY_START, VECTOR)
        fixed = np.where(used, start + BINARY_LOOP * np.ceil(self._per_worker / vector), 0.0)
        self.cycles += fixed[:, None]
        self.vertices = int(used.sum())
        self.work = Work(0.0, float(place.elements.sum()) * (2 if half else 4))  # the result
        return self

    def add_operation(self, name: str, half: bool = False, loaded: float = 0.0) -> None:
        """Do one operation more on every element, for which `loaded` bytes come from memory."""
        cost = op_cost(name, half)
        self.cycles += (np.ceil(self._per_worker / cost.elements) * cost.cycles)[:, None]
        self.work = self.work.plus(Work(float(self.place.elements.sum()), loaded))
        self._note(name, 0, (cost.how, cost.source))
        self.operations.append(name)


def compute_step(
    name: str, stage: str, cycles: np.ndarray, vertices: int, origin: Origin, work: Work = NO_WORK
) -> PricedStep:
    """A compute set from the cycles [low and high, n_tiles] of every tile."""
    low, (how, source) = cycles[0], origin
    slowest, tiles = Cycles(*cycles.max(1, initial=0.0).tolist()), int((low > 0).sum())
    balance = float(low.mean() / slowest.low) if slowest.low else 1.0
    step = Step("compute", name, stage, cycles=slowest, tiles=tiles, vertices=vertices)
    of_work = {"flops": work.flops, "memory_bytes": work.memory_bytes}
    return PricedStep(replace(step, balance=balance, how=how, source=source, **of_work), low)


def _common(names: list[str]) -> str:
    """One name for several: what they start with, or how many there are."""
    if len(names) == 1:
        return names[0]
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    prefix = "".join(letters[0] for letters in alike).rstrip("_ ")
    return f"{prefix}*" if len(prefix) > 2 else f"{names[0]} +{len(names) - 1}"
