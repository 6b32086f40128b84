"""Memory of a compute process of `qm1b generate`: that it does not grow, and its estimate.

`growth`: from conformer 1,000 to conformer 5,000.  Sends batches of small molecules of two shapes
to one worker, as the generator does, and reads the worker's resident memory.  For a quick look:
--first 64 --last 256 --step 64.

The other names are levels of theory.  Each is computed in fresh processes, whose peaks stand beside
the estimate: one that compiles its programs, which the estimate is to meet, and one that finds them
on disk, which it is not to be below.
"""

import itertools
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness, molecules
from pyscf_ipu import Molecule, Settings, Solver
from pyscf_ipu.base.host.disk_cache import PLACE
from qm1b.engine import factory
from qm1b.engine import worker as engine_worker
from qm1b.process import jobs
from qm1b.process.worker import Worker, environment, environment_of, wait
from qm1b.rows.schema import Conformer
from qm1b.settings import PRESETS, RunSettings

MAX_GROWTH = 1.05
SMILES = ("CO", "O")

MAX_ERROR = 0.1
"""Of the estimate."""
NINE, AMIDE = "CCC1CC(=O)NC(C)O1", "CC(=O)NC"
CASES = {
    "sto-3g": (NINE, Settings(xc="b3lyp", basis="sto-3g")),
    "6-31g*": (NINE, Settings(xc="b3lyp", basis="6-31g*")),
    "wb97x": ("CCCCCCCC", Settings(xc="wb97x", basis="def2-svp", jk="ri")),
    "def2-tzvp": (NINE, Settings(xc="b3lyp", basis="def2-tzvp", jk="ri")),
    "spice": (AMIDE, Settings.preset("spice")),
    "spice-float32": (AMIDE, replace(Settings.preset("spice"), precision="float32")),
    "omol25": ("CCO", Settings.preset("omol25")),
    "r2scan-3c": (NINE, Settings.preset("r2scan-3c")),
    "openff": (AMIDE, Settings.preset("openff")),
}
"""A molecule and a level by the level's name."""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "names", ["growth", *CASES])
    parser.add_argument("--first", type=int, default=1000, help="conformers before a reading")
    parser.add_argument("--last", type=int, default=5000, help="conformers in all")
    parser.add_argument("--step", type=int, default=500, help="conformers between readings")
    args = parser.parse_args()
    readings = [*range(args.first, args.last, args.step), args.last]
    parts = {"growth": partial(growth, readings)} | {n: partial(estimate, n) for n in CASES}
    return harness.run_parts(parts, args.names, args.out)


def estimate(name: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The peaks of a case, in MiB, and those that the estimate misses."""
    rows, missed = [], []
    for forces in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            first, again = (_in_new_process(name, forces, folder) for _ in range(2))
        row = first | {"forces": forces, "again": again["peak"]}
        ratios = {key: row[key] / row["estimate"] for key in ("peak", "again")}
        rows.append(row | {f"{key}/estimate": ratio for key, ratio in ratios.items()})
        if abs(ratios["peak"] - 1) > MAX_ERROR or ratios["again"] > 1 + MAX_ERROR:
            missed.append(f"{row['peak']:.0f}, {row['again']:.0f} for {row['estimate']:.0f} MiB")
    harness.table(rows)
    return rows, missed


def _in_new_process(name: str, forces: bool, folder: str) -> dict[str, Any]:
    """`peak` as a worker of the generator would have it, with programs kept in a folder."""
    context = get_context("spawn")
    with environment_of(environment() | {PLACE: folder}), ProcessPoolExecutor(1, context) as pool:
        return pool.submit(peak, name, forces).result()


def peak(name: str, forces: bool) -> dict[str, Any]:
    """Computes the molecule of a case; the most memory that this process has held (Linux)."""
    smiles, settings = CASES[name]
    solver, (mol,) = Solver(settings), molecules.embed([smiles])
    shape = solver.shape(mol)
    (result,) = solver.run(shape, [mol], forces=forces)
    assert result.converged
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "n_ao": shape.n_ao,
        "estimate": solver.memory_bytes(shape, forces=forces) / 2**20,
        "peak": int(lines["VmHWM"].split()[0]) / 1024,
    }


def growth(readings: list[int]) -> tuple[dict[str, Any], list[str]]:
    """The memory of a worker at some numbers of conformers."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "worker.log"
        engine = (factory.DEFAULT, RunSettings(PRESETS["qm1b"], conformers=1))
        worker = Worker(engine_worker.serve, engine, log)
        worker.start()
        try:
            seen = measure(worker, readings)
        except EOFError:
            raise SystemExit(f"the worker died:\n{log.read_text()[-2000:]}") from None
        finally:
            worker.stop()
    share = seen[-1][1] / seen[0][1]
    text = f"from conformer {seen[0][0]} to {seen[-1][0]} the memory grew by {share - 1:.1%}"
    print(text)
    return {"mib": seen, "growth": share}, [] if share <= MAX_GROWTH else [text]


def measure(worker: Worker, readings: list[int]) -> list[tuple[int, float]]:
    """(conformers so far, MiB) at each reading."""
    solver = Solver(PRESETS["qm1b"])
    mols = itertools.cycle(molecules.embed(SMILES))
    rng = np.random.default_rng(0)
    seen: list[tuple[int, float]] = []
    done, start = 0, time.perf_counter()
    for reading in readings:
        while done < reading:
            mol = next(mols)
            shape = solver.shape(mol)
            size = min(solver.batch_size(shape), reading - done)
            batch = tuple(_conformer(mol, done + i, rng) for i in range(size))
            _finish(worker, jobs.Job(batch, shape))
            done += size
        seen.append((done, resident_mib(worker)))
        rate = done / (time.perf_counter() - start)
        print(f"{done:6d} conformers: {seen[-1][1]:7.1f} MiB, {rate:.0f} per second", flush=True)
    return seen


def _conformer(mol: Molecule, index: int, rng: np.random.Generator) -> Conformer:
    """A slightly shaken copy: every batch brings new numbers."""
    positions = mol.positions + rng.normal(scale=0.03, size=mol.positions.shape)
    numbers = mol.numbers.astype(np.uint8)
    return Conformer(
        line=1, smiles=mol.smiles or "", conformer=index, seed=0, charge=mol.charge,
        numbers=numbers, positions=positions,
    )  # fmt: skip


def _finish(worker: Worker, job: jobs.Job) -> None:
    """Send one job and wait for its end."""
    worker.send(job)
    while True:
        wait([worker], 60.0)
        for message in worker.messages():
            if isinstance(message, jobs.Failed):
                raise SystemExit(f"the job failed: {message.error}")
            if isinstance(message, jobs.Done):
                assert len(message.answer) == len(job.items)
                return


def resident_mib(worker: Worker) -> float:
    """Resident memory of the worker's process (Linux)."""
    pages = int(Path(f"/proc/{worker.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    sys.exit(main())
