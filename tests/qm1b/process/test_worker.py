"""Worker processes: who used the processor, how they end, and what they are called."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qm1b.errors import UserError
from qm1b.process import worker as module
from qm1b.process.worker import Ready, Worker, cpu_seconds, start_server, wait


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


PARENT = """
import os, sys
from pathlib import Path
from qm1b.process.worker import Worker, start_server, wait
sys.path.insert(0, sys.argv[2])
from test_worker import works

if __name__ == "__main__":
    if "server" in sys.argv:
        start_server()
    worker = Worker(works, (), Path(sys.argv[1]))
    worker.start()
    wait([worker], 60.0)
    worker.send("job")
    print(worker.process.pid, flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["server", "spawn"])
def test_a_busy_worker_dies_with_its_parent(tmp_path, how):
    """Also if the parent that is killed is not the process that forked it."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    command = [sys.executable, script, tmp_path / "log", Path(__file__).parent, how]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120.0, check=False)
    assert ended.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 30.0
    while cpu_seconds(int(ended.stdout)) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def has_variable(conn, name):
    conn.send(os.environ.get(name))


def test_a_worker_has_the_variables_of_now(tmp_path, monkeypatch):
    """The server that forks it may be older."""
    start_server()
    monkeypatch.setenv("QM1B_TEST", "new")
    for name, value in (("QM1B_TEST", "new"), ("OMP_NUM_THREADS", "1")):
        worker = Worker(has_variable, (name,), tmp_path / "log")
        worker.start()
        wait([worker], 60.0)
        assert next(worker.messages()) == value
        worker.stop()


@pytest.mark.parametrize(("name", "method"), [("short", "forkserver"), ("long" * 20, None)])
def test_a_socket_of_too_long_a_path_is_not_made(tmp_path, name, method):
    folder = Path("/tmp") / f"{name}-{tmp_path.parent.name[-20:]}"
    folder.mkdir(exist_ok=True)
    ask = "import multiprocessing as mp; start_server(); print(mp.get_start_method(True))"
    command = [sys.executable, "-c", f"from qm1b.process.worker import start_server; {ask}"]
    place = os.environ | {"TMPDIR": str(folder)}
    ended = subprocess.run(command, env=place, capture_output=True, text=True, check=True)
    assert ended.stdout == f"{method}\n"
    folder.rmdir()


def test_a_folder_that_is_gone_is_one_sentence(tmp_path, capfd, monkeypatch):
    with pytest.raises(UserError, match=r"folder .*/gone is gone: somebody deleted or moved it"):
        Worker(works, (), tmp_path / "gone" / "log").start()
    here = tmp_path / "here"
    here.mkdir()
    worker = Worker(works, (), here / "log")
    with monkeypatch.context() as patch:  # gone before the child opens its log
        patch.setattr(module, "_has_server", lambda: shutil.rmtree(here) or False)
        worker.start()
    wait([worker], 60.0)
    with pytest.raises(EOFError):
        list(worker.messages())
    worker.stop()
    assert "Traceback" not in capfd.readouterr().err
