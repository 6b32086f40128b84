"""Work units as tasks on a Ray cluster.

The calling process reads and screens the input, keeps the lock, and writes the shards, so the nodes
need the installed package and no shared file system. Which task runs where, and what becomes of it
when its node is lost, is Ray's business: a unit is a function of its lines and the settings, so it
may run anywhere, and again.
"""

from __future__ import annotations

import functools
import logging
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from . import engine, manifest
from .dispatch import ProgramEvent
from .errors import UserError
from .interrupts import Interrupt, interrupts
from .ledger import Unit
from .pipeline import Found, Pipeline, Pools, Reports
from .presets import RunSettings
from .progress import Display, Quiet, Stats
from .schema import Drop
from .smiles import Candidate
from .units import Plan

RETRIES = 20
"""How often Ray runs a unit again whose node or worker process was lost."""

QUEUED = 1.5
"""Units handed to Ray, for each CPU: a node never waits for the calling process."""

POLL_SECONDS = 0.5
CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class Task:
    """One work unit, and all that is needed to compute it."""

    unit: int
    lines: tuple[Candidate | Drop, ...]
    settings: RunSettings
    factory: str


@dataclass(frozen=True)
class Finished:
    """A computed unit, and what it was computed with."""

    unit: Unit
    versions: dict[str, str]
    programs: tuple[ProgramEvent, ...]


@dataclass(frozen=True)
class Job:
    """What the calling process gives to the cluster."""

    settings: RunSettings
    factory: str
    plan: Plan
    other_versions: bool
    write: Callable[[Unit, dict[str, str]], None]
    """Takes each finished unit, and the versions that it was computed with."""


@dataclass(frozen=True)
class Watch:
    """Who is told, and who may interrupt."""

    stats: Stats
    display: Display
    interrupt: Interrupt


def compute(address: str, job: Job, lines: Iterator[Found], watch: Watch) -> None:
    """Compute the units of screened lines on the cluster at `address` ("auto": the one that this
    machine belongs to).

    After a first Ctrl-C no more units are handed out, and those that are under way are finished.

    Raises:
        UserError: Ray is not installed, there is no cluster, it fails, or its nodes have other
            software.
    """
    ray = _connected(address)
    try:
        cpus = int(ray.cluster_resources().get("CPU", 0))
        watch.display.say(f"Ray cluster at {address}: {cpus} CPUs")
        with interrupts(watch.interrupt):  # Ray has a handler of its own for SIGTERM
            for finished in _finished(ray, _tasks(job, lines), watch):
                _take(finished, job, watch.stats)
                watch.display.update(watch.stats)
    except ray.exceptions.RayTaskError:
        raise  # of our own code, not of the cluster
    except (ray.exceptions.RayError, ConnectionError) as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise UserError(
            f"the Ray cluster at {address} failed ({what}); what is written stays, and the same "
            "command goes on, with or without --cluster."
        ) from None
    finally:
        ray.shutdown()


def _finished(ray: Any, tasks: Iterator[Task], watch: Watch) -> Iterator[Finished]:
    """Results as they come; no more tasks than keep the cluster busy are handed out ahead."""
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(unit_of_task)
    running: list[Any] = []
    told = False
    while watch.interrupt.count < 2:
        if not watch.interrupt.count:
            ahead = max(1, round(QUEUED * ray.cluster_resources().get("CPU", 0)))
            room = max(0, ahead - len(running))
            running += [remote.remote(task) for task in islice(tasks, room)]
        elif not told:
            watch.display.say(
                "Interrupted: finishing the units under way; once more to stop at once."
            )
            told = True
        if not running:
            return
        ready, running = ray.wait(running, num_returns=1, timeout=POLL_SECONDS)
        yield from (_result(ray, reference) for reference in ready)
        watch.display.update(watch.stats)


def unit_of_task(task: Task) -> Finished:
    """Compute one unit; this runs on a node."""
    station = _station(task.factory, task.settings)
    done: list[Unit] = []
    stats = Stats(len(task.lines), task.settings.conformers)
    reports = Reports(stats, Quiet(), done.append)
    pipeline = Pipeline(task.settings, station.solver, iter(task.lines), reports)
    try:
        pipeline.run(station.pools, Interrupt())
    except BaseException:
        station.pools.stop()
        _station.cache_clear()
        raise
    (unit,) = done
    return Finished(unit, station.versions, tuple(stats.compiles))


@dataclass(frozen=True)
class _Station:
    """What a Ray worker process keeps from task to task."""

    solver: Any
    pools: Pools
    versions: dict[str, str]


@functools.cache  # Ray reuses its processes: engines with compiled programs outlive the task
def _station(factory: str, settings: RunSettings) -> _Station:
    solver = engine.build(factory, settings.level)
    n_ao = engine.ao_counter(solver)
    log = Path(tempfile.mkdtemp(prefix="qm1b-")) / "workers.log"
    return _Station(solver, Pools(1, factory, settings, solver, n_ao, log), manifest.versions())


def _tasks(job: Job, lines: Iterator[Found]) -> Iterator[Task]:
    """The lines of each unit together."""
    ours = (found for found in lines if found is not None)
    for unit, group in groupby(ours, lambda found: job.plan.unit_of(found.line)):
        yield Task(unit, tuple(group), job.settings, job.factory)


def _connected(address: str) -> Any:
    try:
        import ray
    except ImportError:
        raise UserError(
            "--cluster needs Ray; install it with: pip install 'pyscf-ipu[cluster]'."
        ) from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        _must_answer(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        what = " ".join(str(error).split())[:200]
        raise UserError(
            f"no Ray cluster at {address} ({what}); start one with ray start --head, or give the "
            "address of one."
        ) from None
    return ray


def _must_answer(address: str) -> None:
    """Raise OSError if nobody listens at host:port; Ray itself would end this process after a
    minute of trying."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()


def _result(ray: Any, reference: Any) -> Finished:
    """The result of a task; an error of the user's in it, as one."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, UserError):
            raise UserError(str(error.cause)) from None
        raise
    except ray.exceptions.WorkerCrashedError as error:
        raise UserError(
            f"a work unit ended its Ray worker {RETRIES + 1} times ({error}); see Ray's logs on "
            "the node, or run it without --cluster."
        ) from None


def _take(done: Finished, job: Job, stats: Stats) -> None:
    """Count and write a unit, if it was computed with our software."""
    found = manifest.other_versions({"versions": done.versions}, {"versions": manifest.versions()})
    if found and not job.other_versions:
        raise UserError(
            "a node of the cluster has other software, which may give other rows; install the "
            "same everywhere, or accept a mixture with --allow-other-versions:\n"
            f"{manifest.table(found)}"
        )
    unit = done.unit
    molecules = len({row.conformer.line for row in unit.rows})
    stats.lines_read += job.plan.lines_of(unit.index)
    stats.molecules += molecules
    stats.missing += molecules * job.settings.conformers - len(unit.rows)
    for row in unit.rows:
        stats.count_row(row)
    for drop in unit.drops:
        stats.count_drop(drop)
    stats.compiles.extend(done.programs)
    job.write(unit, done.versions)
