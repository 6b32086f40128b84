"""One worker process with a pipe: started, watched, killed and replaced.

Used for RDKit (which may hang or crash on a SMILES) and for the engine (a single thread a core).
A worker handles one job at a time, so what is lost with it is known. Workers die with their parent,
whatever kills it, and leave Ctrl-C to it.
"""

from __future__ import annotations

import ctypes
import multiprocessing as mp
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import connection
from pathlib import Path
from typing import Any

Connection = connection.Connection
Serve = Callable[..., None]

_CONTEXT = mp.get_context("spawn")  # fork and the threads of RDKit, XLA and rich do not mix


@dataclass
class Worker:
    """A process running `serve(connection, *args)`.

    env is set before the process starts, hence before any import in it; its stdout and stderr are
    appended to `log`.
    """

    serve: Serve
    args: tuple[Any, ...]
    log: Path
    env: Mapping[str, str] = field(default_factory=dict)
    job: Any = None
    deadline: float = float("inf")
    fresh: bool = True
    """Whether it has yet to say something: its imports may still be running."""

    def start(self) -> None:
        """Start the process, or a new one after `stop`."""
        self.conn, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(
            target=_child,
            args=(theirs, os.getpid(), str(self.log), self.serve, self.args),
            daemon=True,
        )
        with environment_of(self.env), _interrupts_ignored():
            self.process.start()
        theirs.close()
        self.job = None
        self.deadline = float("inf")
        self.fresh = True

    def send(self, job: Any, seconds: float = float("inf")) -> None:
        """Give the worker its one job; after `seconds` it is `overdue`."""
        self.job = job
        self.deadline = time.monotonic() + seconds
        with suppress(OSError):  # it is dead: `messages` will say so
            self.conn.send(job)

    @property
    def overdue(self) -> bool:
        """Whether the job has run past its limit."""
        return time.monotonic() > self.deadline

    def messages(self) -> Iterator[Any]:
        """What has arrived. Raises EOFError when the process is dead."""
        try:
            while self.conn.poll():
                yield self.conn.recv()
        except (OSError, EOFError) as error:
            raise EOFError("worker died") from error

    def stop(self) -> int | None:
        """Kill the process and return its exit code (negative: the signal)."""
        self.process.join(timeout=0.2)  # one that died by itself keeps its own exit code
        code = self.process.exitcode
        self.process.kill()
        self.process.join()
        self.conn.close()
        return code


def wait(workers: Iterable[Worker], timeout: float) -> None:
    """Sleep until one of the workers says something or dies, at most `timeout` seconds."""
    connection.wait([worker.conn for worker in workers], timeout)


def last_words(log: Path) -> str:
    """The last line that workers wrote."""
    try:
        lines = log.read_text(errors="replace").split("\n")
    except OSError:
        lines = []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no message")


def n_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def environment_of(env: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for processes started inside: libraries count threads when imported."""
    before = {key: os.environ.get(key) for key in env}
    os.environ.update(env)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


def _child(conn: Connection, parent: int, log: str, serve: Serve, args: Sequence[Any]) -> None:
    """What runs in the new process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with(parent)
    # A warning of a library must not tear the progress bar; a crash must leave its last words.
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent is done with us
        serve(conn, *args)
    sys.stdout.flush()


def _die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent dies (Linux), or watch for it elsewhere."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """A child started inside ignores Ctrl-C from its first instruction on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
