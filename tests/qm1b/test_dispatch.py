"""Dispatch: batches go out only as far as the memory reaches."""

import pytest
from test_buckets import conformer

from qm1b.buckets import Buckets
from qm1b.compute import Service
from qm1b.dispatch import ComputePool
from qm1b.presets import PRESETS


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """Three workers that are never started, on a machine of 100 bytes; 80 of them may be used."""
    monkeypatch.setattr("qm1b.workers.Worker.start", lambda self: None)
    monkeypatch.setattr("qm1b.workers.Worker.send", lambda self, job, _: setattr(self, "job", job))
    need = {"small": 10, "large": 60, "huge": 900}
    service = Service(PRESETS["qm1b"])
    return ComputePool(3, "", service, tmp_path / "log", len, need.__getitem__, machine_bytes=100)


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
