"""The hash of the code that decides rows: what counts, and that no module is forgotten."""

import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from fake_engine import Solver
from fake_runs import settings
from threads import Threads

from qm1b.folder.manifest import sources
from qm1b.folder.manifest.versions import versions
from qm1b.process import worker
from qm1b.run.pipeline import Pools
from qm1b.settings import PRESETS

ROOT = Path(__file__).parents[4]
HOMES = {name: ROOT / name for name in sources.PACKAGES}
LOOP = ROOT / "pyscf_ipu" / "scf" / "cycle.py"
CPP = ROOT / sources.CODELETS / "boys.hpp"


def changed(path, old, new):
    """A reader of files that finds something else in one of them."""

    def text_of(file):
        text = file.read_text()
        if file != path:
            return text
        assert old in text
        return text.replace(old, new, 1)

    return text_of


def digest(text_of=Path.read_text, built=""):
    return sources.digest(HOMES, built, text_of)


@pytest.fixture(scope="module")
def plain():
    return digest()


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (LOOP, "\nAUFBAU_ERROR = ", "\n# Why not.\nAUFBAU_ERROR  =  "),
        (LOOP, '"""', '"""Another beginning. '),
        (CPP, "#pragma once\n", "#pragma once  // once\n/* more\n * of it */\n\n"),
    ],
    ids=["comment", "docstring", "C++"],
)
def test_comments_and_layout_do_not_count(plain, path, old, new):
    assert digest(changed(path, old, new)) == plain


def test_a_constant_a_compiler_and_a_number_of_cpp_count(plain):
    constant = changed(LOOP, "\nAUFBAU_ERROR = ", "\nAUFBAU_ERROR = 2.0 * ")
    number = changed(CPP, "#pragma once\n", "#pragma once\nstatic const int more = 1'000;\n")
    others = {digest(constant), digest(number), digest(built="GNU 13.1"), plain}
    assert len(others) == 4


def test_every_python_has_the_same_hash(tmp_path):
    """Newer versions parse into more fields; the hash of this code must not see them."""
    for name in sources.PACKAGES:
        (tmp_path / name).mkdir()
    path = tmp_path / "qm1b" / "engine" / "worker.py"
    path.parent.mkdir()
    path.write_text(
        "from pyscf_ipu import scf\n"
        "class C(object): pass\n"
        "async def f(a, /, *b: int, c=1e-3, **d) -> str:\n    return f'{a!r:>{c}}' 'b'\n"
    )
    (tmp_path / "pyscf_ipu" / "scf.py").write_text("EPS = u'x', b'y', 1_000j\n")
    (tmp_path / "pyscf_ipu" / "other.py").write_text("nobody imports this\n")
    homes = {name: tmp_path / name for name in sources.PACKAGES}
    assert sources.digest(homes, "", Path.read_text) == "6daac5024ca1dacf"


def test_the_language_of_a_machine_does_not_count():
    """Texts are read as UTF-8, and not as the machine's settings say."""
    work = "from qm1b.folder.manifest.sources import sources; print(sources(''))"
    strict = [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning"]
    done = subprocess.run([*strict, "-c", work], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == sources.digest(HOMES, "", Path.read_text), done.stderr[-500:]


def test_what_only_type_checkers_import_does_not_count():
    names = sources.modules(HOMES, Path.read_text)
    assert "pyscf_ipu.scf.cycle" in names
    assert "pyscf_ipu.api.optimize" not in names  # the package names it for type checkers
    assert not [n for n in names if n.startswith(("schnet", "qm1b.commands", "pyscf_ipu.ipu"))]
    assert {"qm1b.rows.suspects", "qm1b.reference.atomisation"} < {*names}  # of the main process
    assert "pyscf_ipu.ipu.engine.metered" in sources.modules(HOMES, Path.read_text, True)


def test_the_pools_start_what_is_hashed(tmp_path):
    with patch.object(worker, "_CONTEXT", Threads):
        run, engine, log = settings(), Solver(**vars(PRESETS["qm1b"])), tmp_path / "log"
        pools = Pools(1, "fake_engine:Solver", run, engine=engine, log=log)
        pools.stop()
    workers = (pools.compute.workers[0], pools.embed.workers[0])
    assert tuple(each.serve.__module__ for each in workers) == sources.WORKERS


WORK = """
import sys
from multiprocessing import Pipe
from threading import Thread
from qm1b.conformers import embed_pool
from qm1b.engine import worker, factory
from qm1b.process.jobs import Done, Job
from qm1b.screening.screen import Candidate
from qm1b.settings import PRESETS, RunSettings
from dataclasses import replace

def started(serve, *args):
    ours, theirs = Pipe()
    Thread(target=serve, args=(theirs, *args), daemon=True).start()
    ours.recv()
    return ours

level = replace(PRESETS["qm1b"], jk="ri", xc="pbe-d3bj")
settings = RunSettings(level, 1, forces=True, audit=1.0, stability="all")
embedder = started(embed_pool.serve, settings)
embedder.send(Job((Candidate(1, "O", 0),)))
conformers = embedder.recv().answer.conformers
from pyscf_ipu.molecule.molecule import Molecule
engine = factory.build(factory.DEFAULT, settings)
first = conformers[0]
shape = engine.shape(Molecule(first.numbers, first.positions))
computer = started(worker.serve, factory.DEFAULT, settings)
computer.send(Job(conformers, shape))
while not isinstance(done := computer.recv(), Done):
    print(done)
print(done.answer[0].status, done.answer[0].reference_energy)
print("modules", *sorted(n for n in sys.modules if n.split(".")[0] in ("pyscf_ipu", "qm1b")))
"""


@pytest.mark.long
def test_no_module_that_works_is_forgotten():
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "converged" in done.stdout, done.stdout
    worked = set(done.stdout.split("modules ")[1].split())
    assert worked <= set(sources.modules(HOMES, Path.read_text))


def test_a_manifest_has_the_hash():
    assert len(versions()["sources"]) == 16
