"""Memory of every tile while the program runs.

A buffer lives from the equation that makes it to the last that uses it, or any view of it.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.profile.data import Buffer, Memory
from pyscf_ipu.tiles.array import WORKERS

LARGEST = 12  # buffers that are named
INSTRUCTIONS_PER_EQUATION = 12  # estimated: pointers, loop, loads and store of one operation
BYTES_PER_INSTRUCTION = 4
CONTROL_BYTES = 32  # estimated: a step of the control program on each tile
EXCHANGE_BYTES = 48  # estimated: code of one exchange on each tile that takes part
SCRATCH = "Vertex Scratch"
STACK_BYTES = WORKERS * 256 + 512  # estimated: workers and supervisor


class Tracker:
    """Live bytes per tile, the most so far, and the buffers that hold them."""

    def __init__(self, n_tiles: int) -> None:
        self.live = np.zeros(n_tiles)
        self.highest = np.zeros(n_tiles)
        codes = ("Vertex Code", "Control Code", "Internal Exchange Code")
        self.fixed = {name: np.zeros(n_tiles) for name in (SCRATCH, "Constants", *codes)}
        self.timeline: list[tuple[str, int]] = []
        self.ipu = 0
        """Where this is, if there are several."""
        self._buffers: dict[int, tuple[str, str, np.ndarray]] = {}
        self._uses: dict[int, int] = {}
        self._next = 0
        self._worst = 0.0
        self._snapshot: list[tuple[str, str, np.ndarray]] = []

    def allocate(self, name: str, stage: str, where: np.ndarray) -> int:
        """A buffer with one use; returns its handle."""
        handle, self._next = self._next, self._next + 1
        self._buffers[handle] = (name, stage, where)
        self._uses[handle] = 1
        self.live = self.live + where
        np.maximum(self.highest, self.live, out=self.highest)
        fullest = float(self.live.max(initial=0.0))
        if fullest > self._worst:
            self._worst = fullest
            self._snapshot = list(self._buffers.values())
        self.timeline.append((f"{stage}: {name}" if stage else name, int(fullest)))
        return handle

    def receive(self, where: np.ndarray) -> None:
        """Bytes [n_tiles] that an exchange brings for one compute set, beside the live ones."""
        np.maximum(self.highest, self.live + where, out=self.highest)

    def scratch(self, where: np.ndarray) -> None:
        """Memory [n_tiles] inside vertices while a compute set runs.

        A vertex has it for as long as the program is loaded, so the largest need counts.
        """
        np.maximum(self.fixed[SCRATCH], where, out=self.fixed[SCRATCH])

    def use(self, handles: Iterable[int]) -> None:
        """One more variable refers to these buffers."""
        for h in handles:
            self._uses[h] += 1

    def release(self, handles: Iterable[int]) -> None:
        """A variable that referred to these buffers is dead."""
        for h in handles:
            self._uses[h] -= 1
            if self._uses[h] == 0:
                self.live = self.live - self._buffers.pop(h)[2]
                del self._uses[h]

    def report(self, target: Target) -> Memory:
        """Per tile, in PopVision's categories, beside the limits of the target."""
        executable = target.executable_memory_bytes
        tile = int(np.argmax(self.highest)) if self.highest.size else 0
        named = sorted(self._snapshot, key=lambda b: -b[2][tile])[:LARGEST]
        used = self.highest > 0
        stack = np.where(used, float(STACK_BYTES), 0.0)
        categories = {"Variables": self.highest, **self.fixed, "Stack": stack}
        return Memory(
            int(target.memory_bytes_per_tile),
            {name: np.ceil(v).astype(np.int64) for name, v in categories.items()},
            np.ceil(sum(self.fixed.values(), stack)).astype(np.int64),
            _thinned(self.timeline),
            tuple(
                Buffer(name, stage, "Variables", int(where[tile]), int(where.sum()))
                for name, stage, where in named
            ),
            int(executable) if executable.known else None,
        )


class Trackers:
    """A tracker for the IPU of every stage; what is allocated is on the present one."""

    def __init__(self, n_tiles: int, ipus: int) -> None:
        self._each = [Tracker(n_tiles) for _ in range(ipus)]
        self.ipu = 0

    @property
    def fixed(self) -> dict[str, np.ndarray]:
        """Of the present IPU."""
        return self._each[self.ipu].fixed

    def allocate(self, name: str, stage: str, where: np.ndarray) -> int:
        """As `Tracker.allocate`."""
        return self._each[self.ipu].allocate(name, stage, where) * len(self._each) + self.ipu

    def receive(self, where: np.ndarray) -> None:
        """As `Tracker.receive`."""
        self._each[self.ipu].receive(where)

    def scratch(self, where: np.ndarray) -> None:
        """As `Tracker.scratch`."""
        self._each[self.ipu].scratch(where)

    def use(self, handles: Iterable[int]) -> None:
        """As `Tracker.use`, wherever the buffers are."""
        for h in handles:
            self._each[h % len(self._each)].use((h // len(self._each),))

    def release(self, handles: Iterable[int]) -> None:
        """As `Tracker.release`, wherever the buffers are."""
        for h in handles:
            self._each[h % len(self._each)].release((h // len(self._each),))

    def report(self, target: Target) -> Memory:
        """All IPUs after one another; buffers and their course are those of the fullest."""
        found = [t.report(target) for t in self._each]
        fullest = max(found, key=lambda m: m.max_tile_bytes)
        return replace(
            fullest,
            by_category={
                name: np.concatenate([m.by_category[name] for m in found])
                for name in fullest.by_category
            },
            always_live=np.concatenate([m.always_live for m in found]),
        )


def _thinned(timeline: list[tuple[str, int]], most: int = 2000) -> tuple[tuple[str, int], ...]:
    """At most `most` points: the highest of every stretch."""
    step = -(-len(timeline) // most) if timeline else 1
    stretches = (timeline[i : i + step] for i in range(0, len(timeline), step))
    return tuple(max(part, key=lambda point: point[1]) for part in stretches)
