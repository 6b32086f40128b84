"""A program of stages as a pipeline: micro-batches follow each other from IPU to IPU.

While a stage works on one micro-batch, its neighbours work on others.  The pipeline fills
(warm-up), all stages are busy (full), and it empties (drain).  What IPUs wait in that time is the
bubble: of p equal stages and m micro-batches (p - 1)/(m + p - 1), both for all forward passes
before all backward passes (Y. Huang et al., GPipe, arXiv:1811.06965) and for one of each in turn
(D. Narayanan et al., PipeDream, doi:10.1145/3341301.3359646).  An update follows, on all IPUs at
the same time, if the program has one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.ipu.profile.data import NOTHING, Cycles, MicroBatches, ProfileData
from pyscf_ipu.ipu.profile.regions import Memory

_Job = tuple[str, int, int]  # kind, IPU, micro-batch
STASH = "Stashed Activations"
"""Category of the memory for micro-batches that wait for their backward pass, all but one."""


@dataclass(frozen=True)
class StageCycles:
    """The work of one IPU, with what it receives from others."""

    forward: Cycles = NOTHING
    """Of one micro-batch, like `backward`."""
    backward: Cycles = NOTHING
    update: Cycles = NOTHING

    @property
    def both(self) -> Cycles:
        """The cycles of one micro-batch."""
        return self.forward + self.backward


@dataclass(frozen=True)
class GanttBar:
    """Work of one stage: cycles from the start of the pipeline."""

    ipu: int
    micro_batch: int | None
    """None for the update."""
    start: float
    end: float
    kind: str = "forward"
    """"forward", "backward" or "update"."""


@dataclass(frozen=True)
class Pipeline:
    """The run of a number of micro-batches."""

    stages: tuple[StageCycles, ...]
    micro_batches: MicroBatches

    @property
    def trained(self) -> bool:
        """Whether there is a backward pass."""
        return any(s.backward.high for s in self.stages)

    @property
    def cycles(self) -> Cycles:
        """The cycles of all micro-batches and of the update."""
        low, high = (max(b.end for b in chart) for chart in (self.bars, self._chart("high")))
        return Cycles(low, high)

    @property
    def bubble(self) -> float:
        """Share of the time of all IPUs up to the update that they wait, of low cycles."""
        busy = self.micro_batches.count * sum(s.both.low for s in self.stages)
        total = len(self.stages) * max(b.end for b in self._passes)
        return 1.0 - busy / total if total else 0.0

    @property
    def phases(self) -> dict[str, float]:
        """Low cycles until all stages have begun, while they work, from the end of the first to
        that of the last one, and of the update."""
        of_each = [[b for b in self._passes if b.ipu == k] for k in range(len(self.stages))]
        begun, over = max(x[0].start for x in of_each), min(x[-1].end for x in of_each)
        first, last, total = min(begun, over), max(begun, over), max(b.end for b in self._passes)
        phases = {"warm_up": first, "full": last - first, "drain": total - last}
        return phases | {"update": self.cycles.low - total}

    @cached_property
    def bars(self) -> tuple[GanttBar, ...]:
        """The chart, of low cycles, in the order of the ends of the bars."""
        return self._chart("low")

    @property
    def _passes(self) -> list[GanttBar]:
        return [b for b in self.bars if b.kind != "update"]

    def depth(self, ipu: int) -> int:
        """The most micro-batches of which a stage keeps something at the same time."""
        count = self.micro_batches.count
        depths = {"sequential": 1, "grouped": count, "1f1b": min(len(self.stages) - ipu, count)}
        return depths[self.micro_batches.order]

    def _jobs(self, ipu: int) -> deque[_Job]:
        """Passes of a stage in their order."""
        count, depth = self.micro_batches.count, self.depth(ipu)
        jobs = [("forward", ipu, i) for i in range(count)]
        for i in range(count if self.trained else 0):
            # Between the forward passes of i + depth - 1 and of the next one.
            jobs.insert(min(2 * i + depth, count + i), ("backward", ipu, i))
        return deque(jobs)

    def _needs(self, job: _Job) -> list[_Job]:
        """What a pass waits for, besides those of its own stage."""
        (kind, k, i), last = job, len(self.stages) - 1
        if kind == "backward":
            return [(kind, k + 1, i)] if k < last else [("forward", k, i)]
        if k:
            return [(kind, k - 1, i)]
        alone = self.micro_batches.order == "sequential" and i and not self.trained
        return [(kind, last, i - 1)] if alone else []

    def _chart(self, which: str) -> tuple[GanttBar, ...]:
        """All passes as early as they can be, of "low" or "high" cycles."""
        waiting = [self._jobs(k) for k in range(len(self.stages))]
        free, done = [0.0] * len(waiting), dict[_Job, GanttBar]()
        while any(waiting):
            for jobs in waiting:
                while jobs:
                    kind, k, i = job = jobs[0]
                    needs = self._needs(job)
                    # Without a backward pass there is room for one between two stages.
                    tight = not self.trained and i and k + 1 < len(free)
                    room = [(kind, k + 1, i - 1)] if tight else []
                    if not all(x in done for x in (*needs, *room)):
                        break
                    ends = [free[k], *(done[x].end for x in needs)]
                    start = max(ends + [done[x].start for x in room])
                    free[k] = start + getattr(getattr(self.stages[k], kind), which)
                    done[job] = GanttBar(k, i, start, end=free[k], kind=kind)
                    jobs.popleft()
        over = max(free)
        updates = ((k, getattr(stage.update, which)) for k, stage in enumerate(self.stages))
        bars = [GanttBar(k, None, over, end=over + n, kind="update") for k, n in updates if n]
        return (*sorted(done.values(), key=lambda b: (b.end, b.ipu)), *bars)

    def to_dict(self) -> dict[str, object]:
        """In types that JSON has."""
        return {
            "micro_batches": self.micro_batches.count,
            "order": self.micro_batches.order,
            "recompute": self.micro_batches.recompute,
            "stages": [asdict(s.both) | asdict(s) for s in self.stages],
            "cycles": self.cycles.to_dict(),
            "bubble": self.bubble,
            "phases": self.phases,
            "bars": [[b.ipu, b.micro_batch, b.start, b.end, b.kind] for b in self.bars],
        }


def pipeline(
    profile: ProfileData, micro_batches: int | MicroBatches | None = None
) -> Pipeline | None:
    """The program with these micro-batches, or with its own; None without stages (`on_ipu`).

    Raises:
        UsageError: There is less than one micro-batch.
    """
    if isinstance(micro_batches, int):
        micro_batches = replace(profile.micro_batches, count=micro_batches)
    flow = micro_batches or profile.micro_batches
    if flow.count < 1:
        raise UsageError(f"micro_batches={flow.count}: give 1 or more")
    if not profile.staged:
        return None
    updates, turns = profile.rounds
    again = flow.recompute and profile.memory.stashed is not None
    stages = [StageCycles() for _ in range(profile.num_ipus)]
    for step, n in profile.steps():
        if step.kind == "host":
            continue
        here = step.cycles * (n / (updates if step.phase == "update" else updates * turns))
        changes = {step.phase: getattr(stages[step.ipu], step.phase) + here}
        if step.phase == "forward" and again and not step.crosses:
            changes["backward"] = stages[step.ipu].backward + here
        stages[step.ipu] = replace(stages[step.ipu], **changes)
    return Pipeline(tuple(stages), flow)


def with_stash(profile: ProfileData, schedule: Pipeline) -> Memory:
    """The memory of a profile with what its stages keep of several micro-batches."""
    memory = profile.memory
    if memory.stashed is None:
        return memory
    kept = memory.stashed[int(schedule.micro_batches.recompute)].reshape(profile.num_ipus, -1)
    more = [(schedule.depth(k) - 1) * row for k, row in enumerate(kept)]
    return replace(memory, by_category=memory.by_category | {STASH: np.concatenate(more)})
