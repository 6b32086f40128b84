"""Conformers per second: ours against one single-threaded PySCF process per core.

    python benchmarks/throughput.py                 all cases
    python benchmarks/throughput.py qm1b mixed      some
    python benchmarks/throughput.py qm1b --limit 4 --rounds 1

Both sides get the same conformers, functional, basis and grid, and one pinned process per core.
PySCF runs three ways: with its own default thresholds, with conv_tol=1e-6, and with density
fitting.  The sides take turns, so that a machine that gets slower does so for all; programs are
compiled and libraries loaded before the clock starts.  Prints medians, ratios, the errors of the
very rows that were timed, compile time and peak memory.  Ends with status 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import molecules
import numpy as np
from pool import Pool, cores
from reference import build

from pyscf_ipu import Molecule, Settings, Solver, enable_disk_cache
from pyscf_ipu.shape import Shape
from pyscf_ipu.units import HARTREE_TO_EV

CHUNK = 4  # conformers of a task at most
TASKS = 4  # for each core at least, so that the cores end together
_solvers: dict[Settings, Solver] = {}  # of this worker process


@dataclass(frozen=True)
class Case:
    """What is computed, by how many times we have to be faster than PySCF (default thresholds),
    than its fastest way and than its density fitting, and the energy error allowed (mean, meV)."""

    settings: Settings
    n_heavy: tuple[int, ...]
    limit: int
    target: float
    target_fastest: float = 0.0
    target_fitting: float = 0.0
    error: float = 1.0


CASES = {
    "qm1b": Case(Settings(xc="b3lyp5"), (9,), 32, 10.0, target_fastest=8.0),
    "mixed": Case(Settings(xc="b3lyp5", precision="mixed"), (9,), 32, 6.0, error=0.01),
    "small": Case(Settings(xc="b3lyp5"), (5, 6, 7), 48, 10.0),
    "6-31g*": Case(
        Settings(xc="b3lyp5", basis="6-31g*", grid_level=1), (9,), 8, 6.0, target_fitting=3.0,
        error=3.0,
    ),
}  # fmt: skip
WAYS = {"PySCF": {}, "PySCF conv_tol=1e-6": {"tol": 1e-6}, "PySCF density_fit": {"fit": True}}


def main() -> int:
    args = _arguments()
    report, missed = {}, []
    for name in args.cases or CASES:
        case = CASES[name]
        mols = chosen(case, args.limit or case.limit)
        print(f"\n{name}: {len(mols)} conformers, {case.settings}", flush=True)
        found = compare(case.settings, mols, args)
        report[name] = found
        missed += [f"{name}: {text}" for text in verdict(case, found)]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(report, indent=1))
    print("ok" if not missed else "MISSED: " + "; ".join(missed))
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; default: all")
    parser.add_argument("--limit", type=int, help="molecules, one conformer each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, help="processes of a side; default: one per core")
    default = Path(__file__).parent / "results" / "throughput.json"
    parser.add_argument("--out", type=Path, default=default)
    args = parser.parse_args()
    unknown = set(args.cases) - set(CASES)
    if unknown:
        parser.error(f"unknown case {', '.join(sorted(unknown))}: give any of {', '.join(CASES)}")
    return args


def chosen(case: Case, limit: int) -> list[Molecule]:
    """Conformers of bundled molecules with the right number of heavy atoms and at most 14 H."""
    found = molecules.embed(
        molecules.smiles_of(molecules.QM9 if 9 in case.n_heavy else molecules.GDB)
    )
    heavy = [(m, int((m.numbers > 1).sum())) for m in found]
    return [m for m, n in heavy if n in case.n_heavy and m.n_atoms - n <= 14][:limit]


def compare(settings: Settings, mols: list[Molecule], args: argparse.Namespace) -> dict[str, Any]:
    """Rates of every side, errors, compile time and memory."""
    shapes = list(dict.fromkeys(shape for shape, _ in batches(settings, mols)))
    with tempfile.TemporaryDirectory() as cache:
        seconds = compile_programs(args.workers, settings, shapes, cache)
        ours = [(settings, shape, part) for shape, part in batches(settings, mols)]
        order = sorted(range(len(mols)), key=lambda i: -mols[i].n_atoms)
        with (
            Pool(args.workers, load, settings, shapes, cache) as jax_pool,
            Pool(args.workers, rehearse, settings, mols[0]) as pyscf_pool,
        ):
            sides = {"ours": (jax_pool, run_ours, ours)}
            for way, options in WAYS.items():
                tasks = [(settings, mols[i], options) for i in order]
                sides[way] = (pyscf_pool, run_pyscf, tasks)
            one_round(*sides["ours"])  # starts the processes, loads what they need; not timed
            one_round(pyscf_pool, run_pyscf, sides["PySCF"][2][:1])
            rounds = alternate(sides, args.rounds, len(mols))
            peak = max(m for _, m in jax_pool.each(peak_memory, [()] * 8))
    rates = {name: median(r for r, _ in values) for name, values in rounds.items()}
    ratios = {way: rates["ours"] / rates[way] for way in WAYS}
    errors = error_of(rounds["ours"][0][1], rounds["PySCF"][0][1])
    for name, rate in rates.items():
        ratio = f"   {ratios[name]:5.1f} times slower" if name in ratios else ""
        print(f"  {name:22} {rate:7.2f} conformers/s{ratio}")
    print(
        f"  energy error: mean {errors['energy_mae']:.3f}, largest {errors['energy_max']:.3f} meV; "
        f"gap: mean {errors['gap_mae']:.3f} meV; {errors['converged']} of {len(mols)} converged"
    )
    print(f"  {len(shapes)} programs compiled in {seconds:.0f} s (all); {peak:.0f} MiB peak memory")
    return {"rates": rates, "ratios": ratios, "errors": errors, "conformers": len(mols),
            "programs": len(shapes), "compile_seconds": seconds, "peak_mib": peak,
            "cores": args.workers or len(cores()),
            "rounds": {k: [r for r, _ in v] for k, v in rounds.items()}}  # fmt: skip


def batches(settings: Settings, mols: list[Molecule]) -> list[tuple[Shape, list[Molecule]]]:
    """A few conformers of one shape each, the largest first."""
    solver = Solver(settings)
    size = max(1, min(CHUNK, len(mols) // (TASKS * len(cores()))))
    groups: dict[Shape, list[Molecule]] = {}
    for mol in mols:
        groups.setdefault(solver.shape(mol), []).append(mol)
    return [
        (shape, group[i : i + size])
        for shape, group in sorted(groups.items(), key=lambda item: -item[0].n_ao)
        for i in range(0, len(group), size)
    ]


def compile_programs(
    workers: int | None, settings: Settings, shapes: list[Shape], cache: str
) -> float:
    """Each program once, into the disk cache from which every worker loads; seconds of all."""
    with Pool(workers) as pool:
        return sum(s for _, s in pool.each(load, [(settings, [shape], cache) for shape in shapes]))


def load(settings: Settings, shapes: list[Shape], cache: str) -> float:
    """In a worker: have the programs ready; seconds that it took."""
    enable_disk_cache(cache)
    solver = _solvers.setdefault(settings, Solver(settings))
    start = time.perf_counter()
    for shape in shapes:
        solver.compile(shape)
    return time.perf_counter() - start


def rehearse(settings: Settings, mol: Molecule) -> None:
    """In a worker: one PySCF calculation of each way, which loads libraries and basis sets."""
    for options in WAYS.values():
        run_pyscf(settings, mol, options)


def run_ours(settings: Settings, shape: Shape, mols: list[Molecule]) -> list[tuple]:
    """In a worker: (molecule, energy, gap, converged) of each."""
    r = _solvers[settings].run(shape, mols)
    keys = [m.positions.tobytes() for m in mols]
    return list(zip(keys, r.energy.tolist(), r.gap.tolist(), r.converged.tolist(), strict=True))


def run_pyscf(settings: Settings, mol: Molecule, options: dict[str, Any]) -> list[tuple]:
    """In a worker: the same from PySCF."""
    from pyscf import lib

    lib.num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        field = build(mol, settings)
        if options.get("fit"):
            field = field.density_fit()
        field.conv_tol = options.get("tol", field.conv_tol)
        energy = field.kernel()
    n = mol.n_electrons // 2
    gap = float(field.mo_energy[n] - field.mo_energy[n - 1])
    return [(mol.positions.tobytes(), float(energy), gap, bool(field.converged))]


def peak_memory() -> float:
    """In a worker: largest resident memory so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def alternate(sides: dict[str, tuple], rounds: int, n: int) -> dict[str, list[tuple]]:
    """(conformers/s, rows by molecule) of every side and round; the order turns round."""
    found: dict[str, list[tuple]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides) if number % 2 == 0 else list(sides)[::-1]:
            seconds, rows = one_round(*sides[name])
            found[name].append((n / seconds, rows))
            print(f"  round {number + 1}: {name:22} {n / seconds:7.2f} conformers/s", flush=True)
    return found


def one_round(pool: Pool, function: Any, tasks: list[tuple]) -> tuple[float, dict[bytes, tuple]]:
    """All conformers once: (seconds, rows by molecule)."""
    start = time.perf_counter()
    done = [row for _, rows in pool.each(function, tasks) for row in rows]
    return time.perf_counter() - start, {key: row for key, *row in done}


def error_of(ours: dict[bytes, tuple], theirs: dict[bytes, tuple]) -> dict[str, float]:
    """Differences from PySCF in meV."""
    pairs = np.array([[ours[k][:2], theirs[k][:2]] for k in ours])
    energy, gap = 1e3 * HARTREE_TO_EV * np.abs(pairs[:, 0] - pairs[:, 1]).T
    return {
        "energy_mae": float(energy.mean()), "energy_max": float(energy.max()),
        "gap_mae": float(gap.mean()), "converged": sum(bool(r[2]) for r in ours.values()),
    }  # fmt: skip


def verdict(case: Case, found: dict[str, Any]) -> list[str]:
    """Targets that were missed."""
    ratios = found["ratios"]
    wanted = [
        (ratios["PySCF"], case.target, "PySCF"),
        (min(ratios.values()), case.target_fastest, "PySCF's fastest way"),
        (ratios["PySCF density_fit"], case.target_fitting, "density fitting"),
    ]
    missed = [f"{r:.1f} of {t:.0f} times {name}" for r, t, name in wanted if r < t]
    if found["errors"]["converged"] < found["conformers"]:
        missed.append("not all converged")
    if not found["errors"]["energy_mae"] <= case.error:
        missed.append(f"mean energy error above {case.error} meV")
    return missed


if __name__ == "__main__":
    sys.exit(main())
