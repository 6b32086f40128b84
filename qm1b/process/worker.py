"""One worker process with a pipe: started, watched, killed and replaced.

It serves RDKit, which may hang or crash on a SMILES, and the engine, one thread per core. A worker
handles one job at a time, so it is known what is lost with it. Workers die with their parent,
whatever kills it, and ignore Ctrl-C.

On Linux a command may have a server: a process that imports what workers need, computes nothing,
and is forked for each of them.  Imports take a core two seconds, and are then made once, beside
those of the parent.
"""

import ctypes
import fcntl
import multiprocessing as mp
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, forkserver
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any

from pyscf_ipu.base.errors import MISTAKES
from qm1b.errors import UserError
from qm1b.storage.files import not_written

Connection = connection.Connection
Serve = Callable[..., None]

BUSY_SHARE = 0.5
"""Part of a time limit that a process must have had the processor for. With less it was stopped or
starved (a debugger, swapping, another job), and the limit says nothing about its job."""

LOG_IS_GONE = 74
"""Exit code of a worker that cannot open its log; the next `start` says why."""

_CONTEXT = mp.get_context("spawn")
"""Without a server.  Never fork: it does not mix with the threads of RDKit, XLA and rich."""

MOST_BYTES = 107 - len("/pymp-12345678/listener-12345678")
"""Length of the folder of temporary files, in which the server has its socket: Linux allows the
path of a socket 107 bytes."""

IMPORTED = (
    "qm1b.cli",
    "qm1b.engine.worker",
    "qm1b.conformers.embed_pool",
    "pyscf_ipu.solver.solver",
)
"""What the server imports; the command itself too, which each child imports as its main module."""


@dataclass(frozen=True)
class Ready:
    """First message of a worker: its imports are done, and it can take a job."""


@dataclass(frozen=True)
class Broken:
    """Last message of a worker that is of no use: it ends the run."""

    error: str
    is_mistake: bool
    """Whether it is a sentence for the user; else the log has a traceback."""


@contextmanager
def ends_run(conn: Connection) -> Iterator[None]:
    """What a worker raises inside is the fault of no molecule, and `Worker.messages` raises it."""
    try:
        yield
    except (EOFError, ConnectionError):
        raise  # the pipe is gone, and so is the parent
    except Exception as error:
        traceback.print_exc()
        is_mistake = isinstance(error, MISTAKES)
        conn.send(Broken(str(error) if is_mistake else repr(error)[:1000], is_mistake))


@dataclass
class Worker:
    """A process running `serve(connection, *args)`."""

    serve: Serve
    args: tuple[object, ...]
    log: Path
    """Takes its stdout and stderr."""
    name: str = "qm1b-worker"
    """What `ps`, `top` and the kernel's log call the process, on Linux; at most 15 characters."""
    job: Any = None
    """The job that it has; None if it is idle."""
    deadline: float = float("inf")
    fresh: bool = True
    """Whether no message has come yet: its imports may still be running."""

    def start(self, seconds: float = float("inf")) -> None:
        """Start the process, or a new one after `stop`.

        Args:
            seconds: time for its imports, after which it is `overdue`.

        Raises:
            UserError: the log cannot be written, whose folder may be gone; or the server has ended.
        """
        try:
            open(self.log, "ab").close()
        except OSError as error:
            raise not_written(self.log, error) from None
        context = mp.get_context("forkserver") if _has_server() else _CONTEXT
        self.conn, theirs = context.Pipe()
        with environment_of(environment()), _interrupts_ignored():
            how = theirs, dict(os.environ), self.name, str(self.log), self.serve, self.args
            self.process = context.Process(target=_child, args=how, daemon=True)
            try:
                self.process.start()
            except EOFError:
                raise UserError(
                    "the server that starts workers has ended, most likely for this reason: "
                    "Too many open files; allow more files in this shell (`ulimit -n 1024`)"
                ) from None
        theirs.close()
        self.job = None
        self.deadline = time.monotonic() + seconds
        self.fresh = True

    def ready(self) -> None:
        """Note that imports are done; a job may have come before."""
        self.fresh = False
        if self.job is None:
            self.deadline = float("inf")

    def idle(self) -> None:
        """Note that the job is done."""
        self.job = None
        self.deadline = float("inf")

    def send(self, job: object, seconds: float = float("inf")) -> None:
        """Give the worker a job; after `seconds` it is `overdue`."""
        self.job = job
        self._began, self._cpu_then = time.monotonic(), cpu_seconds(self.process.pid)
        self.deadline = self._began + seconds
        with suppress(OSError):  # it is dead: `messages` will say so
            self.conn.send(job)

    @property
    def since(self) -> float:
        """When the job was sent, on the monotonic clock."""
        return self._began

    @property
    def overdue(self) -> bool:
        """Whether the job has run past its limit, or the imports past theirs."""
        return time.monotonic() > self.deadline

    @property
    def starved(self) -> bool:
        """Whether the job had the processor for less than BUSY_SHARE of its time.

        True where the system does not tell: then only another try can.
        """
        used = cpu_seconds(self.process.pid)
        if used is None or self._cpu_then is None:
            return True
        return used - self._cpu_then < BUSY_SHARE * (time.monotonic() - self._began)

    def messages(self) -> Iterator[Any]:
        """The messages that have arrived.

        Raises:
            EOFError: the process is dead.
            UserError: it cannot work with these settings, or on this machine.
            RuntimeError: it met an error of the program.
        """
        try:
            while self.conn.poll():
                message = self.conn.recv()
                if isinstance(message, Broken):
                    break
                yield message
            else:
                return
        except (OSError, EOFError) as error:
            raise EOFError("worker died") from error
        if message.is_mistake:
            raise UserError(message.error)
        raise RuntimeError(f"{self.name} failed: {message.error}; {self.log} has the traceback")

    def stop(self) -> int | None:
        """Kill the process and return its exit code (negative: the signal)."""
        self.process.join(timeout=0.2)  # one that died by itself keeps its own exit code
        self.process.kill()
        self.process.join()
        self.conn.close()
        return self.process.exitcode


def wait(workers: Iterable[Worker], timeout: float) -> None:
    """Sleep until a message comes or a worker dies, at most `timeout` seconds."""
    connection.wait([worker.conn for worker in workers], timeout)


def last_words(log: Path) -> str:
    """The last line in a log of workers."""
    try:
        lines = log.read_text(errors="replace").split("\n")
    except OSError:
        lines = []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no message")


def cpu_seconds(pid: int | None) -> float | None:
    """Processor time that a process has used; None where there is no /proc, or no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    user, system = fields[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def environment_of(env: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started inside."""
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


def start_server() -> None:
    """Fork the workers of this process from a server from now on; it imports while others go on.

    Elsewhere than on Linux, and where its socket would have too long a path, each worker makes its
    own imports.  For a command, which takes the server's folder away when it ends: Ray kills its
    processes, and the folder would stay.
    """
    if sys.platform == "linux" and len(os.fsencode(tempfile.gettempdir())) <= MOST_BYTES:
        mp.set_start_method("forkserver", force=True)
        _has_server()


def _has_server() -> bool:
    """Whether there is to be a server, which runs then.

    It takes the variables of `environment` from its start, and ends with this process.
    """
    wanted = mp.get_start_method(allow_none=True) == "forkserver"
    if not wanted or not isinstance(_CONTEXT, SpawnContext):
        return False
    mp.set_forkserver_preload([*IMPORTED])
    with environment_of(environment()), _interrupts_ignored(), _stderr_thrown_away():
        forkserver.ensure_running()
    return True


@contextmanager
def _stderr_thrown_away() -> Iterator[None]:
    """Let what is started inside write no warnings beside the progress bar."""
    before = os.dup(2)
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _child(
    conn: Connection,
    env: Mapping[str, str],
    name: str,
    log: str,
    serve: Serve,
    args: Sequence[object],
) -> None:
    """What runs in the new process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(env)  # the server may be older than changes to it
    _die_with_parent(name)
    # Warnings must not break the progress bar, and the last words of a crash must be kept.
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError:
        os._exit(LOG_IS_GONE)  # no traceback per worker: the parent says it in one sentence
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent has ended
        serve(conn, *args)
    sys.stdout.flush()


def _die_with_parent(name: str) -> None:
    """Let the kernel kill this process when its parent dies (Linux), or watch for it elsewhere.

    The parent holds the other end of a pipe to the end of its life.
    """
    parent = mp.parent_process()
    assert parent is not None
    if sys.platform == "linux":
        set_name, pipe = 15, int(parent.sentinel)  # type: ignore[arg-type]
        ctypes.CDLL(None).prctl(set_name, name.encode())
        fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
        if not parent.is_alive():
            os._exit(1)
        return

    def watch() -> None:
        parent.join()
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


def environment() -> dict[str, str]:
    """Variables that make NumPy, its BLAS and XLA single-threaded, if set before the import.

    And JAX computes on the processor: workers, of which there is one per core, cannot share a GPU.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "NPROC": "1",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"{flags} --xla_cpu_multi_thread_eigen=false".strip(),
    }
