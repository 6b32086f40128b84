"""Work units as tasks on a Ray cluster.

The calling process reads and screens the input, keeps the lock, and writes the shards, so the nodes
need the installed package and no shared file system. Ray decides where a task runs, and runs it
again if its node is lost: a unit depends only on its lines and the settings.
"""

import atexit
import functools
import ipaddress
import logging
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout, suppress
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.base.host.temporaries import temporary
from pyscf_ipu.base.terminal import say
from qm1b.engine import factory as engine_factory
from qm1b.engine.factory import Engine
from qm1b.engine.programs import ProgramEvent
from qm1b.errors import UserError
from qm1b.folder.manifest import manifest
from qm1b.folder.manifest.work_units import UNIT_SECONDS, WorkPlan
from qm1b.process.display import Display
from qm1b.process.interrupts import Interrupt, interrupts
from qm1b.process.ray_messages import RayMessages
from qm1b.rows.schema import Drop
from qm1b.rows.unit import Unit
from qm1b.run.pipeline import Pipeline, Pools, Reports, Verdict
from qm1b.run.progress.progress import Stats
from qm1b.screening.screen import Candidate
from qm1b.settings import RunSettings

RETRIES = 20
"""How often Ray repeats a unit whose node or worker process was lost."""

QUEUED = 1.5
"""Units handed to Ray per CPU, so that no node waits for the calling process."""

Ray = Any
"""The package ray, which is imported only if --cluster asks for it."""

LOG = "qm1b-workers.log"
"""In a node's folder for temporary files: what engine and RDKit print there."""

OPEN = (
    "this Ray cluster asks for no token: whoever reaches its ports can run code on its machines as "
    'you; set RAY_AUTH_MODE=token, or close the ports (docs/running.md, "Who may use the cluster")'
)

POLL_SECONDS = 0.5
CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class Task:
    """One work unit, and all that is needed to compute it."""

    unit: int
    plan: WorkPlan
    lines: tuple[Candidate | Drop, ...]
    settings: RunSettings
    factory: str


@dataclass(frozen=True)
class Finished:
    """A computed unit, and what it was computed with."""

    unit: Unit
    lines: int
    """Input lines of the task."""
    versions: dict[str, str]
    programs: tuple[ProgramEvent, ...]


@dataclass(frozen=True)
class ClusterJob:
    """What the calling process gives to the cluster."""

    settings: RunSettings
    factory: str
    plan: WorkPlan
    other_versions: bool
    """Accept nodes with other software."""


def compute(
    address: str, job: ClusterJob, lines: Iterator[Verdict], reports: Reports, interrupt: Interrupt
) -> None:
    """Compute the units of screened lines.

    After a first Ctrl-C no more units are handed out, and those that are under way are finished.

    Args:
        address: that of a cluster, or auto for the one that this machine belongs to.
        job: what is computed.
        lines: the screened lines.
        reports: takes the finished units and tells about them.
        interrupt: counts Ctrl-C.

    Raises:
        UserError: Ray is not installed, there is no cluster, it fails, or its nodes have other
            software.
    """
    messages = RayMessages(sys.stdout)
    with redirect_stdout(messages):
        ray = _connected(address)
        try:
            cpus = int(ray.cluster_resources().get("CPU", 0))
            reports.stats.workers = max(1, cpus)
            reports.display.say(f"Ray cluster at {address}: {cpus} CPUs")
            with interrupts(interrupt):  # Ray has installed a handler for SIGTERM
                for finished in _finished(
                    ray, _tasks(job, lines), reports, messages=messages, interrupt=interrupt
                ):
                    _take(finished, job, reports)
                    reports.display.update(reports.stats)
        except ray.exceptions.RayTaskError:
            raise  # of our own code, not of the cluster
        except (ray.exceptions.RayError, ConnectionError) as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise UserError(
                f"the Ray cluster at {address} failed ({what}); what was written is kept: run the "
                "same command again to resume, with or without --cluster"
            ) from None
        finally:
            ray.shutdown()
            for message in messages.take():
                reports.display.say(message)


def _finished(
    ray: Ray,
    tasks: Iterator[Task],
    reports: Reports,
    *,
    messages: RayMessages,
    interrupt: Interrupt,
) -> Iterator[Finished]:
    """Results as they come; no more tasks than keep the cluster busy are handed out ahead."""
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(unit_of_task)
    running: list[object] = []
    while interrupt.count < 2:
        of_a_cpu = reports.stats.workers * UNIT_SECONDS / (reports.stats.priced_rate or 1.0)
        if not interrupt.count and interrupt.seconds_left > QUEUED * of_a_cpu:
            ahead = max(1, round(QUEUED * ray.cluster_resources().get("CPU", 0)))
            room = max(0, ahead - len(running))
            running += [remote.remote(task) for task in islice(tasks, room)]
        elif interrupt.count and interrupt.is_new():
            reports.display.say(f"{interrupt.cause}: finishing the units in progress")
        if not running:
            return
        ready, running = ray.wait(running, num_returns=1, timeout=POLL_SECONDS)
        for message in messages.take():
            reports.display.say(message)
        yield from (_result(ray, reference) for reference in ready)
        reports.display.update(reports.stats)


def unit_of_task(task: Task) -> Finished:
    """Compute one unit; this runs on a node."""
    station = _station(task.factory, task.settings)
    done: list[Unit] = []
    stats = Stats(n_lines=len(task.lines), conformers=task.settings.conformers)
    reports = Reports(stats, Display(), done.append)
    lines = iter(task.lines)
    pipeline = Pipeline(task.settings, station.engine, lines, plan=task.plan, reports=reports)
    try:
        pipeline.run(station.pools, Interrupt())
    except BaseException:
        station.pools.stop()
        _station.cache_clear()
        raise
    (unit,) = done
    return Finished(unit, len(task.lines), station.versions, programs=tuple(stats.compiles))


@dataclass(frozen=True)
class _Station:
    """What a Ray worker process keeps from task to task."""

    engine: Engine
    pools: Pools
    versions: dict[str, str]


@functools.cache  # Ray reuses its processes: engines with compiled programs outlive the task
def _station(factory: str, settings: RunSettings) -> _Station:
    engine = engine_factory.build(factory, settings)
    closing = ExitStack()  # Ray kills this process in the end, and the next one removes the log
    atexit.register(closing.close)
    log = closing.enter_context(temporary(Path(tempfile.gettempdir()) / LOG))
    return _Station(
        engine,
        Pools(1, factory, settings, engine=engine, log=Path(log.name)),
        manifest.versions(settings.packages, settings.machine),
    )


def _tasks(job: ClusterJob, lines: Iterator[Verdict]) -> Iterator[Task]:
    """The lines of each unit together."""
    ours = (line for line in lines if line is not None)
    for unit, group in groupby(ours, lambda line: job.plan.unit_of(line.line)):
        yield Task(unit, job.plan, lines=tuple(group), settings=job.settings, factory=job.factory)


def _connected(address: str) -> Ray:
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")  # which takes messages of two nodes for one
    try:
        import ray
    except ImportError:
        raise MissingPackage(f"--cluster needs Ray: run {how_to_install('cluster')}") from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        _must_answer(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        what = " ".join(str(error).split())[:200]
        raise UserError(
            f"no Ray cluster at {address} ({what}); start one with ray start --head, or give the "
            "address of one"
        ) from None
    if _is_open(ray.get_runtime_context().gcs_address):
        say(f"qm1b: {OPEN}", to_stderr=True)
    return ray


def _is_open(address: str) -> bool:
    """Whether other machines may use the cluster whose head is at host:port."""
    host = address.rpartition(":")[0].strip("[]")
    with suppress(ValueError):  # a name
        if ipaddress.ip_address(host).is_loopback:
            return False
    return os.environ.get("RAY_AUTH_MODE", "disabled").lower() == "disabled"


def _must_answer(address: str) -> None:
    """Raise OSError if nothing listens at host:port; Ray would try for a minute, then exit."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()


def _result(ray: Ray, reference: object) -> Finished:
    """The result of a task; raises the UserError that it raised."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, UserError):
            raise UserError(str(error.cause)) from None
        raise
    except ray.exceptions.WorkerCrashedError as error:
        raise UserError(
            f"a work unit killed its Ray worker {RETRIES + 1} times ({error}); see Ray's logs on "
            "the node, or run without --cluster"
        ) from None


def _take(done: Finished, job: ClusterJob, reports: Reports) -> None:
    """Count and write a unit, if it was computed with our software."""
    differing = manifest.other_versions(done.versions, manifest.versions(job.settings.packages))
    if differing and not job.other_versions:
        raise UserError(
            "a node of the cluster has other software versions, which may give other rows; install "
            "the same on all nodes, or accept a mixture with --allow-other-versions:\n"
            f"{manifest.table(differing)}"
        )
    reports.stats.add_unit(done.unit, done.lines)
    for program in done.programs:
        reports.stats.program_ready(program)
    reports.write(done.unit, done.versions)
