"""A program of stages as a pipeline: micro-batches follow each other from IPU to IPU.

While a stage works on one micro-batch, the stage before it works on the next.  The pipeline fills
(warm-up), all stages are busy (full), and it empties (drain).  The slowest stage sets the pace::

    total = sum of all stages + (micro-batches - 1) * slowest stage

What IPUs wait in that time is the bubble (Y. Huang et al., GPipe, arXiv:1811.06965).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.ipu.profile.data import NOTHING, Cycles, ProfileData

SHOWN = 16
"""Micro-batches of a report."""


@dataclass(frozen=True)
class GanttBar:
    """One micro-batch in one stage: cycles from the start of the pipeline."""

    ipu: int
    micro_batch: int
    start: float
    end: float


@dataclass(frozen=True)
class Pipeline:
    """The run of a number of micro-batches."""

    stages: tuple[Cycles, ...]
    """Of one micro-batch on every IPU, with what it sends to the next."""
    micro_batches: int

    @property
    def cycles(self) -> Cycles:
        """The cycles of all micro-batches."""
        total = sum(self.stages, NOTHING)
        low, high = (max(getattr(s, end) for s in self.stages) for end in ("low", "high"))
        return total + Cycles(low, high) * (self.micro_batches - 1)

    @property
    def bubble(self) -> float:
        """Share of the time of all IPUs that they wait, of low cycles."""
        busy = self.micro_batches * sum(s.low for s in self.stages)
        total = len(self.stages) * self.cycles.low
        return 1.0 - busy / total if total else 0.0

    @property
    def phases(self) -> dict[str, float]:
        """Low cycles until the last stage begins, while it is fed, and after the first one ends."""
        last = self.bars[-1]
        begins = next(b.start for b in self.bars if b.ipu == last.ipu)
        ends = max(b.end for b in self.bars if b.ipu == 0)
        warm_up, drain = min(begins, ends), self.cycles.low - max(begins, ends)
        return {"warm_up": warm_up, "full": self.cycles.low - warm_up - drain, "drain": drain}

    @property
    def bars(self) -> tuple[GanttBar, ...]:
        """The chart.

        A stage takes a micro-batch when it is free, the stage before has finished it, and the stage
        behind has begun the one before: between two stages there is room for one.
        """
        chart: list[GanttBar] = []
        free = [0.0] * (len(self.stages) + 1)
        begun = [0.0] * (len(self.stages) + 1)
        for batch in range(self.micro_batches):
            ready, before = 0.0, begun.copy()
            for ipu, stage in enumerate(self.stages):
                begun[ipu] = max(ready, free[ipu], before[ipu + 1])
                ready = free[ipu] = begun[ipu] + stage.low
                chart.append(GanttBar(ipu, batch, begun[ipu], end=ready))
        return tuple(chart)

    def to_dict(self) -> dict[str, object]:
        """In types that JSON has."""
        return {
            "micro_batches": self.micro_batches,
            "stages": [{"low": s.low, "high": s.high} for s in self.stages],
            "cycles": {"low": self.cycles.low, "high": self.cycles.high},
            "bubble": self.bubble,
            "phases": self.phases,
            "bars": [[b.ipu, b.micro_batch, b.start, b.end] for b in self.bars],
        }


def pipeline(profile: ProfileData, micro_batches: int = SHOWN) -> Pipeline | None:
    """The program with this many micro-batches; None if it has no stages (`on_ipu`).

    Raises:
        UsageError: There is less than one micro-batch.
    """
    if micro_batches < 1:
        raise UsageError(f"micro_batches={micro_batches}: give 1 or more")
    if not profile.staged:
        return None
    stages = [NOTHING] * profile.num_ipus
    for step, n in profile.steps():
        if step.kind != "host":
            stages[step.ipu] += step.cycles * n
    return Pipeline(tuple(stages), micro_batches)
