"""What the parent and the compute workers tell each other, and what the run hears of programs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from qm1b.rows.schema import Conformer, Result

PROGRAM_SECONDS = 5.0
"""What a program takes on a core, where no other has been compiled yet; measured for STO-3G."""


@dataclass(frozen=True)
class Job:
    """A batch for one worker."""

    shape: Hashable
    conformers: tuple[Conformer, ...]
    is_retry: bool = False
    """The conformer's batch has failed before; this is its try by itself."""
    deaths: int = 0
    """Processes that ended while they had this conformer and no other."""
    alone: bool = False
    """Not while another process computes."""
    is_probe: bool = False
    """A probe: its results are discarded (`qm1b.engine.deaths`)."""

    def one_by_one(self) -> list[Job]:
        """The conformers by themselves, after the batch has failed."""
        return [replace(self, conformers=(c,), is_retry=True) for c in self.conformers]


@dataclass(frozen=True)
class Compiling:
    """The worker has begun to compile a shape."""

    shape: Hashable


@dataclass(frozen=True)
class Compiled:
    """A program is ready; `cached` if it came from the disk cache."""

    shape: Hashable
    seconds: float
    cached: bool


@dataclass(frozen=True)
class Done:
    """The results of the worker's job, in the order of its conformers."""

    results: tuple[Result, ...]


@dataclass(frozen=True)
class Failed:
    """The worker's job raised an error; the worker can take another."""

    error: str


@dataclass(frozen=True)
class ProgramEvent:
    """A program is being made on a worker, or is ready there."""

    worker: int
    shape: Hashable
    seconds: float | None = None
    """Time that it took; None while it is being made."""
    cached: bool = False

    @property
    def label(self) -> str:
        """The shape in words."""
        return str(getattr(self.shape, "label", self.shape))
