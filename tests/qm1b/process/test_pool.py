"""Workers that die: an item's fault ends in its loss, a machine's ends the run."""

from dataclasses import replace

import pytest
from fake_runs import conformer

from qm1b.engine.compute_pool import POLICY
from qm1b.errors import UserError
from qm1b.process.jobs import Done, Job, Lost
from qm1b.process.pool import MAX_PROBES, Policy, Pool, how_it_died
from qm1b.process.worker import Ready, Worker

PROBE = Job((conformer(0),), "probe", is_probe=True)


class Mute(Worker):
    """A process that is never started; a test says what it does."""

    arrived = ()

    @property
    def starved(self):
        assert self.job is not None  # nobody knows what it used before its first job
        return False

    def start(self, seconds=0.0):
        self.job, self.deadline = None, float("inf")

    def stop(self):
        return -9

    def send(self, job, seconds=0.0):
        self.job = job

    def messages(self):
        if self.arrived is None:
            raise EOFError
        return iter(self.arrived)


@pytest.fixture
def pool(tmp_path):
    return Pool([Mute(print, (), tmp_path / "log")], lambda: PROBE, POLICY)


def after(pool, job, *arrived, hung=False):
    """The news, and what is tried again, after a worker had a job."""
    (worker,) = pool.workers
    worker.ready()
    worker.send(job)
    worker.arrived = None if not arrived and not hung else arrived
    worker.deadline = 0.0 if hung else float("inf")
    news = [event.news for event in pool._events()]
    again = [*pool._retries]
    pool._retries.clear()
    return news, again


def test_one_by_one_then_alone_then_only_if_the_machine_is_sound(pool):
    batch = Job((conformer(1), conformer(2)), "s")
    _, (first, second) = after(pool, batch)
    assert [job.items[0].line for job in (first, second)] == [1, 2]
    assert not first.alone
    _, (again,) = after(pool, first)
    assert again.alone
    _, (patient,) = after(pool, second, hung=True)
    assert not patient.alone
    assert after(pool, again) == ([], [PROBE])
    assert after(pool, patient, hung=True) == ([], [])  # waits for a probe of its own
    (_, lost), probes = after(pool, PROBE, Done(()))
    assert (lost.job.items[0].line, lost.error) == (1, "the compute process died of SIGKILL")
    assert probes == [PROBE]
    (_, lost), probes = after(pool, PROBE, Done(()))
    assert (lost.job.items[0].line, lost.error) == (2, "no answer in 3600 s")
    assert probes == []


def test_where_a_limit_is_final_only_the_starved_are_tried_again(tmp_path):
    policy = Policy("embedding", "methane", 3, seconds=5.0, is_final=True, nothing="no result")
    pool = Pool([Mute(print, (), tmp_path / "log")], lambda: PROBE, policy)
    job = Job((conformer(1),))
    ((lost,), again) = after(pool, job, hung=True)
    assert (lost, again) == (Lost(job, "no result in 5 s", hung=True), [])
    for tries in (1, 2):
        _, (job,) = after(pool, job, Done("part", starved=True))
        assert (job.lost, job.alone) == (tries, True)
    assert after(pool, job, Done("part", starved=True)) == ([], [PROBE])
    (_, lost), _ = after(pool, PROBE, Done(()))
    assert (lost.answer, lost.job.lost) == ("part", 3)


def test_a_machine_that_fails_the_probe_ends_the_run(pool):
    assert after(pool, replace(Job((conformer(7),), "s"), lost=1)) == ([], [PROBE])
    for _ in range(MAX_PROBES - 1):
        assert after(pool, PROBE) == ([], [PROBE])
    with pytest.raises(UserError, match=r"line 7 \(\[He\]\), and then with a hydrogen.*same comm"):
        after(pool, PROBE)


def test_a_message_names_five_suspects(pool):
    for line in range(7):
        bare = replace(conformer(line), smiles="")
        after(pool, Job((bare,), "s", lost=1))
    for _ in range(MAX_PROBES - 1):
        after(pool, PROBE)
    with pytest.raises(UserError, match=r"line 4 \(without SMILES\) and 2 more, and then with a h"):
        after(pool, PROBE)


def test_how_it_died():
    assert how_it_died("compute", 3) == "the compute process died, exit code 3"
    assert how_it_died("embedding", -11) == "the embedding process died of SIGSEGV"


def test_a_worker_that_hangs_in_its_imports_is_replaced(tmp_path):
    policy = Policy("embedding", "methane", 3, seconds=5.0, is_final=True, nothing="no result")
    pool = Pool([Mute(print, (), tmp_path / "log")], lambda: PROBE, policy)
    (worker,) = pool.workers
    worker.deadline = 0.0
    assert [*pool._events()] == []
    assert worker.deadline == float("inf")


def test_workers_that_never_get_ready_end_the_run(pool):
    (worker,) = pool.workers
    worker.fresh, worker.arrived = True, None
    worker.send(PROBE)
    for _ in range(2):
        assert [*pool._events()] == []
    assert [*pool._retries] == [PROBE]  # no fault of the job
    worker.arrived = (Ready(),)
    assert [*pool._events()] == []  # and the count begins anew
    worker.fresh, worker.arrived = True, None
    for _ in range(2):
        assert [*pool._events()] == []
    with pytest.raises(UserError, match=r"the compute processes cannot start \(exit code -9\)"):
        [*pool._events()]
