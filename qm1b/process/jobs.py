"""What a worker process of a pool has at a time, what it answers, and what may become of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar, runtime_checkable

from qm1b.process.worker import Connection, Ready, ends_run


@runtime_checkable
class _Item(Protocol):
    """A molecule, or one of its conformers."""

    @property
    def line(self) -> int: ...
    @property
    def smiles(self) -> str: ...


Work = TypeVar("Work", bound=_Item)
"""What a pool works on."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Job(Generic[Work]):
    """What one worker has."""

    items: tuple[Work, ...]
    shape: Hashable = None
    """What the items have in common, if that matters."""
    is_retry: bool = False
    """The item's job has failed before; this is its try by itself."""
    lost: int = 0
    """Tries that ended without an answer while a process had this item and no other."""
    alone: bool = False
    """Not while another process works."""
    is_probe: bool = False
    """A job that any sound machine does; its answer is discarded (`qm1b.process.pool`)."""

    def one_by_one(self) -> list[Job[Work]]:
        """The items by themselves, after the job has failed."""
        return [replace(self, items=(item,), is_retry=True) for item in self.items]


@dataclass(frozen=True)
class Done(Generic[Answer]):
    """The answer to the worker's job."""

    answer: Answer
    starved: bool = False
    """Whether it might have been otherwise with the processor to itself."""


@dataclass(frozen=True)
class Failed:
    """The worker's job raised an error; the worker can take another."""

    error: str


@dataclass(frozen=True)
class Lost(Generic[Work]):
    """A job without an answer, or with one that may not count."""

    job: Job[Work]
    error: str
    hung: bool = False
    """Whether its time ran out; else its process died."""
    answer: object = None
    """What becomes of a starved job if no other try gives more."""


def serve_jobs(conn: Connection, answer: Callable[[Job], object]) -> None:
    """Say that this process is ready, then answer one job after another."""
    conn.send(Ready())
    with ends_run(conn):
        while True:
            conn.send(answer(conn.recv()))
