"""Faults that strike while a run is under way: its worker processes, its shards, its folder.

The workers are found by the names that they give themselves, and by the server between them and
the run (/proc, Linux).
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from pyscf_ipu.base.terminal import EXIT_USER_ERROR
from qm1b.folder import shards

Started = subprocess.Popen[str]
Start = Callable[..., Started]
"""Starts a run: input, folder, and whether it tries dropped lines again."""

Fault = Callable[[random.Random, Path, Path], int]
"""Takes random numbers, the input and the folder; gives the number of shards it damaged."""

COMPUTE, EMBED = "qm1b-compute", "qm1b-embed"

LIMIT = 300.0
"""Seconds after which a run is taken to hang."""

SAFE = 14
"""Of 21 shards: with more, a run may be over before a fault strikes."""


class Wrong(Exception):
    """A run did not end as it should."""


def faults(start: Start) -> dict[str, Fault]:
    """All of them, by name."""
    return {
        "compute killed": worker_killed(start, COMPUTE),
        "embed killed": worker_killed(start, EMBED),
        "compute stopped": worker_stopped(start, COMPUTE),
        "embed stopped": worker_stopped(start, EMBED),
        "shard deleted": shard_deleted(start),
        "folder deleted": folder_deleted(start),
        "retry killed": retry_killed(start),
    }


def worker_killed(start: Start, name: str) -> Fault:
    """Single workers of one kind are killed, up to four; the run must not take notice."""

    def fault(rng: random.Random, source: Path, out: Path) -> int:
        run = start(source, out)
        for _ in range(rng.randint(1, 4)):
            pid = _victim(rng, run, name)
            _signal(pid, signal.SIGKILL)
            time.sleep(rng.choice([0.0, rng.uniform(0, 1.0)]))
        return _must_end(run, 0)

    return fault


def worker_stopped(start: Start, name: str) -> Fault:
    """A worker stands still for a while or, if it embeds, for ever; the run must not take notice.

    For ever only once the workers are ready, since they have minutes to get ready.
    """

    def fault(rng: random.Random, source: Path, out: Path) -> int:
        run = start(source, out)
        for_ever = name == EMBED and rng.random() < 0.5
        _first_shard(run, out) if for_ever else None
        pid = _victim(rng, run, name)
        _signal(pid, signal.SIGSTOP)
        if not for_ever:
            time.sleep(rng.uniform(0, 5))
            _signal(pid, signal.SIGCONT)
        return _must_end(run, 0)

    return fault


def shard_deleted(start: Start) -> Fault:
    """A shard is deleted; the run must end with one sentence."""

    def fault(rng: random.Random, source: Path, out: Path) -> int:
        run = start(source, out)
        _first_shard(run, out)
        time.sleep(rng.uniform(0, 0.3))
        there = shards.shards(out)
        rng.choice(there).unlink()
        in_time = len(shards.shards(out)) < SAFE and run.poll() is None
        return _must_end(run, EXIT_USER_ERROR if in_time else None, "gone")

    return fault


def folder_deleted(start: Start) -> Fault:
    """The folder is deleted, while the workers start or later; the run must end with a sentence."""

    def fault(rng: random.Random, source: Path, out: Path) -> int:
        run = start(source, out)
        if rng.random() < 0.5:
            _first_shard(run, out)
        else:
            _wait(run, (out / shards.MANIFEST).exists)
            time.sleep(rng.uniform(0, 2))
        in_time = len(shards.shards(out)) < SAFE and run.poll() is None
        away = out.with_name(f"{out.name}-away")
        out.rename(away)  # at once: a file that is written meanwhile would stop the deletion
        shutil.rmtree(away)
        return _must_end(run, EXIT_USER_ERROR if in_time else None, "gone")

    return fault


def retry_killed(start: Start) -> Fault:
    """A complete folder gets dropped lines, and the run that tries them again is killed."""
    drop = import_module("fake_runs").drop_again  # of the tests, which are on the path

    def fault(rng: random.Random, source: Path, out: Path) -> int:
        _must_end(start(source, out), 0)
        paths = shards.shards(out)
        for path in rng.sample(paths, rng.randint(1, len(paths))):
            lines = sorted(set(shards.read_shard(path)["line"].tolist()))
            for line in rng.sample(lines, min(len(lines), rng.randint(1, 3))):
                drop(path, line, rng.choice(["embed_crash", "embed_timeout"]))
        before = {path: path.stat().st_mtime_ns for path in paths}
        run = start(source, out, retry=True)
        _wait(run, lambda: any(path.stat().st_mtime_ns != before[path] for path in paths))
        time.sleep(rng.choice([0.0, rng.uniform(0, 0.05), rng.uniform(0, 0.5)]))
        run.kill()
        run.wait()
        return _must_end(start(source, out, retry=True), 0)

    return fault


def _victim(rng: random.Random, run: Started, name: str) -> int:
    """A worker of a run; 0 if it ends before it has one."""
    found: list[int] = []
    _wait(run, lambda: bool(found.extend(_workers(run.pid, name)) or found))
    time.sleep(rng.choice([0.0, rng.uniform(0, 3)]))
    found = _workers(run.pid, name) or found
    return rng.choice(found) if found else 0


def _workers(parent: int, name: str) -> list[int]:
    """The processes of a name that the server of a process has forked."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            comm, _, rest = stat.read_text().partition(" (")[2].rpartition(") ")
            if comm == name and _above(int(rest.split()[1])) == parent:
                found.append(int(stat.parent.name))
    return found


def _above(process: int) -> int:
    """The number of its parent."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()[1])


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        if pid:
            os.kill(pid, number)


def _first_shard(run: Started, out: Path) -> None:
    _wait(run, lambda: bool(shards.shards(out)))


def _wait(run: Started, until: Callable[[], bool]) -> None:
    """Wait for something that a run does, or for its end."""
    end = time.monotonic() + LIMIT
    while not until() and run.poll() is None and time.monotonic() < end:
        time.sleep(0.005)


def _must_end(run: Started, status: int | None, word: str = "") -> int:
    """The run must end with a status (None: 0 or that of an error), and at most one line."""
    try:
        _, errors = run.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        run.kill()
        run.communicate()
        raise Wrong("the run hangs") from None
    found = run.returncode
    if found != status and not (status is None and found in (0, EXIT_USER_ERROR)):
        raise Wrong(f"the run ended with status {found} instead of {status}: {errors[-500:]}")
    if len(errors.splitlines()) > (1 if found else 0) or (found and word not in errors):
        raise Wrong(f"the run said: {errors[-500:]}")
    return 0
