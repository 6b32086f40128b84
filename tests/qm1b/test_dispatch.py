"""Dispatch: batches go out only as far as the memory reaches."""

import pytest
from fake_engine import Fragile64
from fake_runs import settings
from test_buckets import conformer

from qm1b.buckets import Buckets
from qm1b.compute import Job, Service
from qm1b.dispatch import ComputePool
from qm1b.pipeline import _memory_of
from qm1b.presets import PRESETS


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """Three workers that are never started, on a machine of 100 bytes; 80 of them may be used."""
    monkeypatch.setattr("qm1b.workers.Worker.start", lambda self: None)
    monkeypatch.setattr("qm1b.workers.Worker.send", lambda self, job, _: setattr(self, "job", job))
    need = {"small": 10, "large": 60, "huge": 900}
    service = Service(PRESETS["qm1b"])
    probe = Job("small", (conformer(0),), is_probe=True)
    log = tmp_path / "log"
    return ComputePool(3, "", service, log, len, need.__getitem__, 100, lambda: probe)


def running(pool, *shapes):
    buckets = Buckets(lambda shape: 1)
    for shape in shapes:
        buckets.add(shape, conformer(1))
    assert list(pool.dispatch(buckets, lambda: ())) == []
    return [worker.job.shape for worker in pool.workers if worker.job]


def test_what_does_not_fit_waits(pool):
    assert running(pool, "large", "large", "small", "small") == ["large", "small"]


def test_alone_everything_may_run(pool):
    assert running(pool, "huge", "small") == ["huge"]


def test_what_has_killed_its_process_gets_the_machine_to_itself(pool):
    assert running(pool, "small") == ["small"]
    pool._retries.append(Job("small", (conformer(2),), deaths=1, alone=True))
    assert running(pool, "large") == ["small"]  # it waits, and nothing overtakes it
    for worker in pool.workers:
        worker.job = None
    assert running(pool, "small", "large") == ["small"]
    assert [worker.job.alone for worker in pool.workers if worker.job] == [True]


def test_memory_is_that_of_the_last_rung():
    solver = Fragile64(basis="sto-3g")
    need = _memory_of(solver, "fake_engine:Fragile64", settings())
    assert (solver.memory_bytes(None), need(None)) == (1, 2)
    need = _memory_of(solver, "fake_engine:Fragile64", settings(retry=False))
    assert need(None) == 1
