"""A command in a fork of a process that has imported everything: a tenth of a second, not two."""

import contextlib
import gc
import hashlib
import importlib
import io
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

from benchmarks.harness import ROOT
from benchmarks.robustness.faults.cases import CASES, Case

IMPORTED = (
    "qm1b.cli schnet.cli pyscf_ipu.commands.cli jax optax equinox pandas pyarrow.parquet h5py "
    "matplotlib.figure matplotlib.backends.backend_agg rdkit.Chem.AllChem ase.db.sqlite lmdb onnx "
    "tensorboardX pyscf.dft pyscf_ipu.api.energies pyscf_ipu.api.frequencies qm1b.audit.verify "
    "qm1b.report.card.write qm1b.convert.export qm1b.convert.split qm1b.convert.merge "
    "qm1b.run.generate "
    "qm1b.convert.importing qm1b.convert.parts qm1b.report.plots schnet.commands.jobs "
    "schnet.network.exports.onnx_graph schnet.network.exports.pyg_weights "
    "schnet.training.costs.training_price "
    "pyscf_ipu.ipu.engine.command qm1b.report.costs.pod fake_engine fake_runs"
).split()
CLI = {"qm1b": "qm1b.cli", "schnet": "schnet.cli", "pyscf-ipu": "pyscf_ipu.commands.cli"}
LIMIT = 120.0
"""Seconds after which a command is stuck; the longest takes eight."""

UNIT_ROWS = 8

LONG = (
    "pyscf_ipu.ipu.engine.command:profile_rks",
    "qm1b.report.costs.pod:pod_plan",
    "qm1b.reference.free_atoms:free_atom_energy",
)
"""What takes long and writes no file; its result is kept."""


class Ended(NamedTuple):
    """How a command ended."""

    status: int | None
    """Negative: the signal that killed it; None: it did not end in time."""
    said: str
    """All that it printed."""


def warm() -> None:
    """Import all that commands import, so that forks need not."""
    sys.path.insert(0, str(ROOT / "tests" / "qm1b"))
    for name in IMPORTED:
        importlib.import_module(name)
    for case in CASES.values():  # tyro reads the source of a command once
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
            importlib.import_module(CLI[case.script]).main([case.arguments[0], "--help"])
    figure = importlib.import_module("matplotlib.figure").Figure()  # which looks for fonts
    figure.subplots().set_title("warm")
    figure.savefig(io.BytesIO())
    gc.freeze()


def command(case: Case, folder: Path, log: Path, kept: Path) -> Ended:
    """Run a command in a folder, in a process group of its own.

    Args:
        case: the command.
        folder: where.
        log: takes what it prints.
        kept: a folder of programs that JAX has compiled.
    """

    def act() -> int:
        stdin = os.open(case.stdin or os.devnull, os.O_RDONLY)
        os.dup2(stdin, 0)
        os.environ.update(case.env)
        _with_fakes(case)
        for place in LONG:
            _kept(place, kept)
        if case.script == "schnet":
            import jax

            jax.config.update("jax_compilation_cache_dir", str(kept))
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        return importlib.import_module(CLI[case.script]).main(case.arguments)

    return in_fork(act, folder, log)


def in_fork(act: Callable[[], int], folder: Path, log: Path) -> Ended:
    """Call a function in a fork, which ends with what it returns."""
    log.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            os.setpgid(0, 0)
            os.chdir(folder)
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.environ["TMPDIR"] = str(folder / "tmp")
            tempfile.tempdir = None
            status = act() or 0
            sys.stdout.flush()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    status = _waited(pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what it left behind
    return Ended(status, log.read_text(errors="replace") if log.exists() else "")


def _waited(pid: int) -> int | None:
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _with_fakes(case: Case) -> None:
    """The tests' engine, small units, blank pictures; threads where nothing is about processes."""
    from matplotlib.figure import Figure

    import qm1b.run.generate as generate
    from qm1b.process import worker

    real = generate.Run

    def run(*values: object, **more: object) -> object:
        made = real(*values, **more)  # type: ignore[arg-type]
        settings = replace(made.settings, unit_rows=UNIT_ROWS)
        return replace(made, factory="fake_engine:Solver", settings=settings)

    generate.Run = run  # type: ignore[assignment]
    Figure.savefig = _blank  # type: ignore[assignment]
    if not case.processes:
        worker._CONTEXT = importlib.import_module("threads").Threads  # type: ignore[assignment]


def _blank(figure: object, stream: IO[bytes], **how: object) -> None:
    """In the place of a picture, which takes a second to draw."""
    for _ in range(4):
        stream.write(bytes(9000))


def _kept(place: str, folder: Path) -> None:
    """Let a function give the result that it gave before."""
    name, _, function = place.partition(":")
    module = importlib.import_module(name)
    real = getattr(module, function)

    def known(*values: object, **more: object) -> object:
        digest = hashlib.sha256(repr((values, more)).encode()).hexdigest()
        path = folder / f"{function}-{digest[:16]}"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(pickle.dumps(real(*values, **more)))
        return pickle.loads(path.read_bytes())

    setattr(module, function, known)
