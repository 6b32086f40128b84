"""Memory of every tile while the program runs.

A buffer lives from the equation that makes it to the last that uses it, or any view of it.  What an
exchange brings for one compute set, and what its vertices need inside themselves, lives as long as
that set.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.profile.regions import Buffer, Lifetime, Memory
from pyscf_ipu.tiles.array import WORKERS

LARGEST = 12  # buffers that are named
MOST_LIFETIMES = 1500  # that are kept, the largest
LEAST_BYTES = 64  # of a variable on a tile whose lifetime is kept
INSTRUCTIONS_PER_EQUATION = 12  # estimated: pointers, loop, loads and store of one operation
BYTES_PER_INSTRUCTION = 4
LIBRARY_BYTES = 1024  # estimated: one of PopLibs's vertices
CONTROL_BYTES = 32  # estimated: a step of the control program on each tile
EXCHANGE_BYTES = 48  # estimated: code of one exchange on each tile that takes part
VARIABLES, SCRATCH = "Variables", "Vertex Scratch"
STACK_BYTES = WORKERS * 256 + 512  # estimated: workers and supervisor


@dataclass(eq=False)
class Held:
    """A buffer: bytes [n_tiles] of one IPU, as long as variables refer to it."""

    name: str
    stage: str
    where: np.ndarray
    first: int
    """Point of the timeline."""
    tracker: Tracker
    uses: int = 1
    copies: list[Held] = field(default_factory=list)
    """On other IPUs; they live as long as this."""

    def on_tile(self, tile: int) -> Buffer:
        """The buffer as a report has it."""
        sizes = {"tile_bytes": int(self.where[tile]), "total_bytes": int(self.where.sum())}
        return Buffer(self.name, self.stage, VARIABLES, **sizes)


def use(buffers: Iterable[Held]) -> None:
    """One more variable refers to these buffers."""
    for held in buffers:
        held.uses += 1


def release(buffers: Iterable[Held]) -> None:
    """A variable that referred to these buffers is dead."""
    for held in buffers:
        held.uses -= 1
        if held.uses == 0:
            held.tracker.end(held)
            release(held.copies)


class Tracker:
    """Live bytes per tile, the most so far, and the buffers that hold them."""

    def __init__(self, n_tiles: int) -> None:
        self.live = np.zeros(n_tiles)
        self.highest = np.zeros(n_tiles)
        self.interleaved = np.zeros(n_tiles)
        """The most that has to be in interleaved memory at once."""
        codes = ("Vertex Code", "Control Code", "Internal Exchange Code")
        self.fixed = {name: np.zeros(n_tiles) for name in ("Constants", *codes)}
        self.timeline: list[tuple[str, int]] = []
        self._held, self._coming, self._scratch, self._scratch_then = np.zeros((4, n_tiles))
        self._codes: dict[Hashable, np.ndarray] = {}
        self._constants: dict[Hashable, np.ndarray] = {}
        self._buffers: dict[Held, None] = {}
        self._lifetimes: list[Lifetime] = []
        self._worst = 0.0
        self._snapshot: list[Held] = []

    def allocate(self, name: str, stage: str, where: np.ndarray) -> Held:
        """A buffer with one use."""
        held = Held(name, stage, where, first=len(self.timeline), tracker=self)
        self._buffers[held] = None
        self.live = self.live + where
        self._note(_label(stage, name))
        return held

    def receive(self, stage: str, where: np.ndarray) -> None:
        """Bytes [n_tiles] that an exchange brings for the next compute set, and no variable has."""
        self._coming = self._coming + where
        self._note(_label(stage, "data on the move"))

    def need_scratch(
        self, stage: str, where: np.ndarray, interleaved: np.ndarray | float = 0.0
    ) -> None:
        """Memory [n_tiles] inside the vertices of the compute set that was opened or added last.

        Bytes of all workers together; those that have to be in interleaved memory are of scratch
        and of variables.  Vertices of one set use the same memory one after another, so the largest
        need counts.
        """
        self._scratch = np.maximum(self._scratch, where)
        self.interleaved = np.maximum(self.interleaved, interleaved)
        self._note(_label(stage, "inside vertices"))

    def next_set(self, received: bool) -> None:
        """A compute set is over; `received` if what came was for that one."""
        none = np.zeros_like(self.live)
        self._held, self._coming, self._scratch = none if received else self._coming, none, none

    def _note(self, label: str) -> None:
        total = self.live + np.maximum(self._held, self._coming) + self._scratch
        higher = total > self.highest
        self._scratch_then = np.where(higher, self._scratch, self._scratch_then)
        self.highest = np.where(higher, total, self.highest)
        fullest = float(total.max(initial=0.0))
        if fullest > self._worst:
            self._worst = fullest
            self._snapshot = list(self._buffers)
        self.timeline.append((label, int(fullest)))

    def add_code(self, key: Hashable, here: np.ndarray, nbytes: int) -> None:
        """Code on the tiles `here` [n_tiles]; a tile has it once."""
        before = self._codes.get(key, np.zeros(len(here), bool))
        self.fixed["Vertex Code"] += nbytes * (here & ~before)
        self._codes[key] = before | here

    def add_constant(self, key: Hashable, where: np.ndarray) -> None:
        """Bytes [n_tiles] of a constant, of which a tile keeps the most that it ever needs."""
        before = self._constants.get(key, np.zeros(len(where)))
        self._constants[key] = np.maximum(before, where)
        self.fixed["Constants"] += self._constants[key] - before

    def end(self, held: Held) -> None:
        """A buffer is gone."""
        del self._buffers[held]
        self.live = self.live - held.where
        most, total = int(held.where.max(initial=0.0)), int(held.where.sum())
        if most >= LEAST_BYTES:
            ends = {"end": len(self.timeline), "tile_bytes": most, "total_bytes": total}
            self._lifetimes.append(Lifetime(held.name, held.stage, held.first, **ends))

    def report(self, target: Target) -> Memory:
        """Per tile, in PopVision's categories, beside the limits of the target."""
        for held in list(self._buffers):
            self.end(held)
        executable = target.executable_memory_bytes
        tile = int(np.argmax(self.highest)) if self.highest.size else 0
        named = sorted(self._snapshot, key=lambda b: -b.where[tile])[:LARGEST]
        stack = np.where(self.highest > 0, float(STACK_BYTES), 0.0)
        data = {VARIABLES: self.highest - self._scratch_then, SCRATCH: self._scratch_then}
        categories = {**data, **self.fixed, "Stack": stack}
        timeline, place = _thinned(self.timeline)
        return Memory(
            int(target.memory_bytes_per_tile),
            {name: np.ceil(v).astype(np.int64) for name, v in categories.items()},
            np.ceil(sum(self.fixed.values(), stack)).astype(np.int64),
            timeline=timeline,
            largest=tuple(b.on_tile(tile) for b in named),
            executable_bytes=int(executable) if executable.known else None,
            interleaved=np.ceil(self.interleaved).astype(np.int64),
            lifetimes=_largest(self._lifetimes, place),
        )


class Trackers:
    """A tracker for the IPU of every stage."""

    def __init__(self, n_tiles: int, ipus: int = 1) -> None:
        self.each = [Tracker(n_tiles) for _ in range(ipus)]
        self._stashed: np.ndarray | None = None
        self.begin()

    def begin(self) -> None:
        """Begin a micro-batch."""
        self._before = np.concatenate([t.live for t in self.each])
        self._received = np.zeros((len(self.each), len(self.each[0].live)))

    def received(self, ipu: int, where: np.ndarray) -> None:
        """Note bytes [n_tiles] that a stage has as its input."""
        self._received[ipu] += where

    def turn(self) -> None:
        """The backward pass begins: what a micro-batch has on the tiles now waits there for it."""
        now = np.concatenate([t.live for t in self.each])
        both = np.array([now - self._before, self._received.ravel()])
        self._stashed = np.ceil(np.maximum(both, 0.0)).astype(np.int64)

    def report(self, target: Target) -> Memory:
        """All IPUs after one another; buffers and their course are those of the fullest."""
        reports = [t.report(target) for t in self.each]
        fullest = max(reports, key=lambda m: m.max_tile_bytes)
        return replace(
            fullest,
            by_category={
                name: np.concatenate([m.by_category[name] for m in reports])
                for name in fullest.by_category
            },
            always_live=np.concatenate([m.always_live for m in reports]),
            interleaved=np.concatenate([m.only_interleaved for m in reports]),
            stashed=self._stashed,
        )


def _label(stage: str, name: str) -> str:
    return f"{stage}: {name}" if stage else name


def _thinned(
    timeline: list[tuple[str, int]], most: int = 2000
) -> tuple[tuple[tuple[str, int], ...], np.ndarray]:
    """At most `most` points, the highest of every stretch; and their places in the whole."""
    step = -(-len(timeline) // most) if timeline else 1
    stretches = (range(i, min(i + step, len(timeline))) for i in range(0, len(timeline), step))
    places = [max(part, key=lambda k: timeline[k][1]) for part in stretches]
    return tuple(timeline[k] for k in places), np.array(places, int)


def _largest(lifetimes: list[Lifetime], places: np.ndarray) -> tuple[Lifetime, ...]:
    """The largest ones that are live at any of these places of the timeline, by place."""
    shown = []
    for x in lifetimes:
        first, end = (int(np.searchsorted(places, k)) for k in (x.first, x.end))
        if first < end:
            shown.append(replace(x, first=first, end=end))
    return tuple(sorted(shown, key=lambda x: -x.tile_bytes)[:MOST_LIFETIMES])
