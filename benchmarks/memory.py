"""Memory of a compute process of `qm1b generate`, from conformer 1,000 to conformer 5,000.

    python benchmarks/memory.py
    python benchmarks/memory.py --first 100 --last 300 --step 100

Sends batches of small molecules of two shapes to one worker, as the generator does, and reads the
worker's resident memory.  Ends with status 1 if it grows by more than 5 %.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import molecules
import numpy as np

from pyscf_ipu import Settings, Solver
from qm1b import compute, engine
from qm1b.presets import PRESETS
from qm1b.schema import Conformer
from qm1b.workers import Worker, wait

MAX_GROWTH = 1.05
SMILES = ("CO", "O")


def main() -> int:
    args = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "worker.log"
        worker = Worker(
            compute.serve, (engine.DEFAULT, PRESETS["qm1b"]), log, compute.environment()
        )
        worker.start()
        try:
            seen = measure(worker, args)
        except EOFError:
            raise SystemExit(f"the worker died:\n{log.read_text()[-2000:]}") from None
        finally:
            worker.stop()
    growth = seen[-1][1] / seen[0][1]
    percent = 100 * growth - 100
    print(f"from conformer {seen[0][0]} to {seen[-1][0]} the memory grew by {percent:.1f} %")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({"mib": seen, "growth": growth}))
    print("ok" if growth <= MAX_GROWTH else "MISSED: more than 5 %")
    return 0 if growth <= MAX_GROWTH else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--first", type=int, default=1000, help="conformers before the first reading"
    )
    parser.add_argument("--last", type=int, default=5000, help="conformers in all")
    parser.add_argument("--step", type=int, default=500, help="conformers between readings")
    default = Path(__file__).parent / "results" / "memory.json"
    parser.add_argument("--out", type=Path, default=default)
    return parser.parse_args()


def measure(worker: Worker, args: argparse.Namespace) -> list[tuple[int, float]]:
    """(conformers so far, MiB) from `first` to `last`."""
    solver = Solver(Settings(**vars(PRESETS["qm1b"])))
    mols = molecules.embed(SMILES)
    rng = np.random.default_rng(0)
    seen: list[tuple[int, float]] = []
    done, turn, start = 0, 0, time.perf_counter()
    next_reading = args.first
    while done < args.last:
        mol = mols[turn % len(mols)]
        turn += 1
        shape = solver.shape(mol)
        size = min(solver.batch_size(shape), next_reading - done)
        batch = tuple(_conformer(mol, done + i, rng) for i in range(size))
        _finish(worker, compute.Job(shape, batch))
        done += size
        if done >= next_reading:
            seen.append((done, resident_mib(worker)))
            rate = done / (time.perf_counter() - start)
            print(
                f"{done:6d} conformers: {seen[-1][1]:7.1f} MiB, {rate:.0f} per second", flush=True
            )
            next_reading = min(next_reading + args.step, args.last)
    return seen


def _conformer(mol: molecules.Molecule, index: int, rng: np.random.Generator) -> Conformer:
    """A slightly shaken copy: every batch brings new numbers."""
    positions = mol.positions + rng.normal(scale=0.03, size=mol.positions.shape)
    return Conformer(
        line=1, smiles=mol.smiles, conformer=index, seed=0, charge=mol.charge,
        numbers=mol.numbers.astype(np.uint8), positions=positions,
    )  # fmt: skip


def _finish(worker: Worker, job: compute.Job) -> None:
    """Send one job and wait for its end."""
    worker.send(job)
    while True:
        wait([worker], 60.0)
        for message in worker.messages():
            if isinstance(message, compute.Failed):
                raise SystemExit(f"the job failed: {message.error}")
            if isinstance(message, compute.Done):
                if len(message.results) != len(job.conformers):
                    raise SystemExit("the worker lost conformers")
                return


def resident_mib(worker: Worker) -> float:
    """Resident memory of the worker's process (Linux)."""
    pages = int(Path(f"/proc/{worker.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    sys.exit(main())
