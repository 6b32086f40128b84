"""Worker processes: who used the processor, how they end, and what they are called."""

import os
import signal
import time
from pathlib import Path

import pytest

from qm1b.errors import UserError
from qm1b.process.worker import Ready, Worker, cpu_seconds, wait


def works(conn):
    """For ever."""
    conn.send(Ready())
    conn.recv()
    while True:
        pass


@pytest.fixture
def worker(tmp_path):
    made = Worker(works, (), tmp_path / "log", name="qm1b-test")
    made.start()
    wait([made], 60.0)
    yield made
    made.stop()


def test_a_limit_counts_for_who_had_the_processor(worker):
    worker.send("job", 0.0)
    began = cpu_seconds(worker.process.pid)
    while cpu_seconds(worker.process.pid) - began < 0.1:
        time.sleep(0.01)
    assert worker.overdue
    worker._began = time.monotonic() - 0.1
    assert not worker.starved
    os.kill(worker.process.pid, signal.SIGSTOP)
    worker._began = time.monotonic() - 100.0
    assert worker.starved


def test_a_process_has_a_name_and_keeps_its_exit_code(worker):
    comm = Path(f"/proc/{worker.process.pid}/comm")
    if comm.exists():
        assert comm.read_text() == "qm1b-test\n"
    os.kill(worker.process.pid, signal.SIGTERM)
    assert worker.stop() == -signal.SIGTERM
    worker.start()


def test_a_process_that_takes_long_to_die_keeps_its_exit_code(worker, monkeypatch):
    class Dying:
        """Has closed its pipe; on a busy machine its end takes longer than `stop` first waits."""

        exitcode = None

        def join(self, timeout=None):
            self.exitcode = None if timeout else -signal.SIGSEGV

        def kill(self):
            """Changes nothing any more."""

    process = worker.process
    with monkeypatch.context() as patch:
        patch.setattr(worker, "process", Dying())
        assert worker.stop() == -signal.SIGSEGV
    process.kill()
    worker.start()


def test_a_folder_that_is_gone_is_one_sentence(tmp_path, capfd):
    with pytest.raises(UserError, match=r"folder .*/gone is gone: somebody deleted or moved it"):
        Worker(works, (), tmp_path / "gone" / "log").start()
    here = tmp_path / "here"
    here.mkdir()
    worker = Worker(works, (), here / "log")
    worker.start()
    (here / "log").unlink()
    here.rmdir()  # before the child, which is importing, opens its log
    wait([worker], 60.0)
    with pytest.raises(EOFError):
        list(worker.messages())
    worker.stop()
    assert "Traceback" not in capfd.readouterr().err
