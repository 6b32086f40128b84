"""Conformers per second: ours against one single-threaded PySCF process per core.

    python benchmarks/throughput.py                      QM9 molecules of 9 heavy atoms
    python benchmarks/throughput.py --limit 4 --rounds 1

Both sides get the same conformers, the same functional, basis and grid, and one pinned process per
core; PySCF runs with its own default thresholds.  The sides take turns, so that a machine that
gets slower does so for both; programs are compiled and libraries loaded before the clock starts.
Ends with status 1 if we are not faster.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import molecules
from pool import Pool, cores
from reference import build

from pyscf_ipu import Molecule, Settings, Solver, enable_disk_cache
from pyscf_ipu.shape import Shape

CHUNK = 4  # conformers of a task: small enough that the cores end together
_solvers: dict[Settings, Solver] = {}  # of this worker process


def main() -> int:
    args = _arguments()
    settings = Settings(basis=args.basis, xc=args.xc, precision=args.precision)
    mols = molecules.embed(molecules.smiles_of(args.smiles, args.limit))
    if not mols:
        raise SystemExit(f"{args.smiles} holds no molecule that can be computed")
    ours, theirs = batches(settings, mols), singles(settings, mols)
    shapes = list(dict.fromkeys(shape for _, shape, _ in ours))
    with tempfile.TemporaryDirectory() as cache:
        compile_programs(args.workers, settings, shapes, cache)
        with (
            Pool(args.workers, load, settings, shapes, cache) as jax_pool,
            Pool(args.workers, rehearse, settings, mols[0]) as pyscf_pool,
        ):
            sides = {"ours": (jax_pool, run_ours, ours), "PySCF": (pyscf_pool, run_pyscf, theirs)}
            for name in sides:  # starts the processes, loads what they need; not timed
                one_round(sides, name, len(mols))
            rates = alternate(sides, args.rounds, len(mols))
    ratio = median(rates["ours"]) / median(rates["PySCF"])
    medians = ", ".join(f"{side} {median(values):.2f}/s" for side, values in rates.items())
    print(f"{medians}: {ratio:.1f} times as fast ({args.workers or len(cores())} cores)")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({"rates": rates, "ratio": ratio, "conformers": len(mols)}))
    return 0 if ratio > 1 else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smiles", type=Path, default=molecules.QM9, help="SMILES file")
    parser.add_argument("--limit", type=int, default=32, help="molecules, one conformer each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, help="processes of a side; default: one per core")
    parser.add_argument("--basis", default="sto-3g")
    parser.add_argument("--xc", default="b3lyp5")
    parser.add_argument("--precision", default="float32")
    default = Path(__file__).parent / "results" / "throughput.json"
    parser.add_argument("--out", type=Path, default=default)
    return parser.parse_args()


def batches(settings: Settings, mols: list[Molecule]) -> list[tuple]:
    """Our tasks: a few conformers of one shape each, the largest first."""
    solver = Solver(settings)
    groups: dict[Shape, list[Molecule]] = {}
    for mol in mols:
        groups.setdefault(solver.shape(mol), []).append(mol)
    return [
        (settings, shape, group[i : i + CHUNK])
        for shape, group in sorted(groups.items(), key=lambda item: -item[0].n_ao)
        for i in range(0, len(group), CHUNK)
    ]


def singles(settings: Settings, mols: list[Molecule]) -> list[tuple]:
    """PySCF's tasks: one conformer each, the largest first."""
    return [
        (settings, mol) for mol in sorted(mols, key=lambda m: -Solver(settings).n_ao(m.numbers))
    ]


def compile_programs(
    workers: int | None, settings: Settings, shapes: list[Shape], cache: str
) -> None:
    """Each program once, into the disk cache from which every worker then loads all of them."""
    start = time.perf_counter()
    with Pool(workers) as pool:
        for _ in pool.each(load, [(settings, [shape], cache) for shape in shapes]):
            pass
    print(f"{len(shapes)} programs compiled in {time.perf_counter() - start:.0f} s", flush=True)


def load(settings: Settings, shapes: list[Shape], cache: str) -> None:
    """In a worker: have the programs ready."""
    enable_disk_cache(cache)
    solver = _solvers.setdefault(settings, Solver(settings))
    for shape in shapes:
        solver.compile(shape)


def rehearse(settings: Settings, mol: Molecule) -> None:
    """In a worker: one PySCF calculation, which loads libcint and libxc."""
    run_pyscf(settings, mol)


def run_ours(settings: Settings, shape: Shape, mols: list[Molecule]) -> tuple[int, float]:
    """In a worker: (converged, sum of energies)."""
    found = _solvers[settings].run(shape, mols)
    return int(found.converged.sum()), float(found.energy.sum())


def run_pyscf(settings: Settings, mol: Molecule) -> tuple[int, float]:
    """In a worker: (converged, energy) with PySCF's default thresholds."""
    from pyscf import lib

    lib.num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        field = build(mol, settings)
        energy = field.kernel()
    return int(field.converged), float(energy)


def alternate(sides: dict[str, Any], rounds: int, n: int) -> dict[str, list[float]]:
    """Conformers per second, round by round; the sides take turns at going first."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides) if number % 2 == 0 else list(sides)[::-1]:
            rate, converged, energy = one_round(sides, name, n)
            rates[name].append(rate)
            print(
                f"round {number + 1}: {name:5} {rate:7.2f} conformers/s, {converged} of {n} "
                f"converged, sum of energies {energy:.4f} Ha",
                flush=True,
            )
    return rates


def one_round(sides: dict[str, Any], name: str, n: int) -> tuple[float, int, float]:
    """All conformers once: (conformers/s, converged, sum of energies)."""
    pool, function, tasks = sides[name]
    start = time.perf_counter()
    done = [result for _, result in pool.each(function, tasks)]
    seconds = time.perf_counter() - start
    return n / seconds, sum(c for c, _ in done), sum(e for _, e in done)


if __name__ == "__main__":
    sys.exit(main())
