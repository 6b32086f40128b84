"""Batches go out only as far as the memory reaches; processes that die lose no rows."""

import pytest
from fake_engine import Fragile64, Solver
from fake_runs import conformer, fake_run, settings

from qm1b.engine.buckets import Buckets
from qm1b.engine.compute_pool import ComputePool
from qm1b.engine.ladder import memory_of
from qm1b.errors import UserError
from qm1b.folder import same, shards
from qm1b.process.jobs import Job


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """Three workers that are never started, on a machine of 100 bytes; 80 of them may be used."""
    monkeypatch.setattr("qm1b.process.worker.Worker.start", lambda self, _: None)
    monkeypatch.setattr(
        "qm1b.process.worker.Worker.send", lambda self, job, _: setattr(self, "job", job)
    )
    monkeypatch.setattr("qm1b.engine.compute_pool.available_bytes", lambda: 100)
    monkeypatch.setattr("qm1b.engine.compute_pool.free_bytes", lambda: 100)
    need = {"small": 10, "large": 60, "huge": 900}
    engine = Solver(basis="sto-3g")
    monkeypatch.setattr(engine, "memory_bytes", lambda shape, forces: need[shape])
    return ComputePool(3, "", settings(retry=False), engine, tmp_path / "log")


def running(pool, *shapes):
    buckets = Buckets(lambda shape: 1)
    for shape in shapes:
        buckets.add(shape, conformer(1))
    assert list(pool.dispatch(buckets, lambda: ())) == []
    return [worker.job.shape for worker in pool.workers if worker.job]


def test_what_does_not_fit_waits(pool):
    assert running(pool, "large", "large", "small", "small") == ["large", "small"]


@pytest.mark.parametrize(("free", "count"), [(9, 1), (60, 2)])
def test_what_other_programs_use_is_not_given_away(pool, monkeypatch, free, count):
    monkeypatch.setattr("qm1b.engine.compute_pool.free_bytes", lambda: free)
    assert len(running(pool, "large", "small")) == count


def test_a_program_is_begun_before_its_batch_is_full(pool):
    buckets = Buckets(lambda shape: 8)
    buckets.add("small", conformer(1))
    assert pool.unmade(["small", "large"]) == ["small", "large"]
    assert list(pool.dispatch(buckets, lambda: ())) == []
    assert [worker.job and worker.job.shape for worker in pool.workers] == ["small", None, None]
    assert pool.unmade(["small", "large"]) == ["large"]
    for worker in pool.workers:
        worker.job = None
    buckets.add("small", conformer(2))  # its program is there or on its way: the batch may fill
    assert list(pool.dispatch(buckets, lambda: ())) == []
    assert not any(worker.job for worker in pool.workers)


def test_alone_everything_may_run(pool):
    assert running(pool, "huge", "small") == ["huge"]


def test_what_has_killed_its_process_gets_the_machine_to_itself(pool):
    assert running(pool, "small") == ["small"]
    pool._retries.append(Job((conformer(2),), "small", lost=1, alone=True))
    assert running(pool, "large") == ["small"]  # it waits, and nothing overtakes it
    for worker in pool.workers:
        worker.job = None
    assert running(pool, "small", "large") == ["small"]
    assert [worker.job.alone for worker in pool.workers if worker.job] == [True]


def test_memory_is_that_of_the_last_rung():
    solver = Fragile64(basis="sto-3g")
    need = memory_of(solver, "fake_engine:Fragile64", settings())
    assert (solver.memory_bytes(None), need(None)) == (1, 2)
    need = memory_of(solver, "fake_engine:Fragile64", settings(retry=False))
    assert need(None) == 1


def test_an_outage_writes_no_errors_and_the_same_command_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_OUTAGE", str(tmp_path / "mark"))
    with pytest.raises(UserError, match=r"died of SIGKILL.*the cause is this machine"):
        fake_run(tmp_path, "O\nC\nCC\n", factory="fake_engine:Outage")
    out = tmp_path / "out-2"
    assert shards.shards(out) == []
    assert shards.read_manifest(out).status == "failed"
    _, summary = fake_run(tmp_path, "O\nC\nCC\n")
    assert summary.tally.statuses == {"converged": 6}


def test_processes_that_are_killed_now_and_then_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_OUTAGE", str(tmp_path / "mark"))
    quiet, _ = fake_run(tmp_path, "C\nCCCCC\n", conformers=1, workers=1)
    killed, summary = fake_run(
        tmp_path, "C\nCCCCC\n", conformers=1, factory="fake_engine:KilledOnce"
    )
    assert len(list(tmp_path.glob("mark-*"))) == 2
    assert summary.tally.statuses == {"converged": 2}
    assert same.differences(quiet, killed) == []
