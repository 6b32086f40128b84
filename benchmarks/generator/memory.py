"""Memory of a compute process of `qm1b generate`, from conformer 1,000 to conformer 5,000.

Sends batches of small molecules of two shapes to one worker, as the generator does, and reads the
worker's resident memory.  For a quick look: --first 64 --last 256 --step 64.
"""

import itertools
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import harness, molecules
from pyscf_ipu import Molecule, Solver
from qm1b.engine import factory
from qm1b.engine import worker as engine_worker
from qm1b.process import jobs
from qm1b.process.worker import Worker, wait
from qm1b.rows.schema import Conformer
from qm1b.settings import PRESETS, RunSettings

MAX_GROWTH = 1.05
SMILES = ("CO", "O")


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--first", type=int, default=1000, help="conformers before a reading")
    parser.add_argument("--last", type=int, default=5000, help="conformers in all")
    parser.add_argument("--step", type=int, default=500, help="conformers between readings")
    args = parser.parse_args()
    readings = [*range(args.first, args.last, args.step), args.last]
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
    growth = seen[-1][1] / seen[0][1]
    text = f"from conformer {seen[0][0]} to {seen[-1][0]} the memory grew by {growth - 1:.1%}"
    print(text)
    missed = [] if growth <= MAX_GROWTH else [text]
    return harness.finish(args.out, {"mib": seen, "growth": growth}, missed)


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
