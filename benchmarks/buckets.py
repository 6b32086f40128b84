"""How many programs 300 molecules need, how long they compile, and what padding costs.

    python benchmarks/buckets.py                   300 molecules of 5 to 9 heavy atoms
    python benchmarks/buckets.py --limit 8 --sample 2

Compiles every program twice in fresh processes, one per core: with an empty disk cache, and again
with what the first left there.  Then times conformers in their padded shape and in their exact
shape, steady state, for a sample of the molecules.  Ends with status 1 if a bound is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import molecules
import numpy as np
from pool import Pool

from pyscf_ipu import Molecule, Settings, Solver, enable_disk_cache
from pyscf_ipu.shape import Shape, shape_of

MAX_PROGRAMS = 15
MAX_COMPILE_SECONDS = 300.0
MAX_PADDING = 1.20


def main() -> int:
    args = _arguments()
    settings = Settings(basis=args.basis, xc=args.xc, precision=args.precision)
    mols = _molecules(args.limit)
    solver = Solver(settings)
    shapes = Counter(solver.shape(m) for m in mols)
    print(f"{len(mols)} molecules, {len(shapes)} programs (at most {MAX_PROGRAMS})")
    for shape, n in sorted(shapes.items(), key=lambda item: item[0].n_ao):
        print(f"  {n:4d} x {shape.label}")
    report = {"molecules": len(mols), "programs": len(shapes)}
    with tempfile.TemporaryDirectory() as cache:
        for name in ("cold", "warm"):
            report[name] = compile_all(settings, list(shapes), cache, args.workers)
        if args.sample:
            report["padding"] = padding(settings, mols, cache, args)
    reached = verdict(report)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(report | {"reached": reached}, indent=1))
    print(f"report: {args.out}")
    return 0 if reached else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limit", type=int, default=300, help="molecules")
    parser.add_argument("--sample", type=int, default=12, help="molecules timed with padding")
    parser.add_argument("--repeat", type=int, default=5, help="timings, of which the median counts")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    parser.add_argument("--basis", default="sto-3g")
    parser.add_argument("--xc", default="b3lyp")
    parser.add_argument("--precision", default="float32")
    default = Path(__file__).parent / "results" / "buckets.json"
    parser.add_argument("--out", type=Path, default=default)
    return parser.parse_args()


def _molecules(limit: int) -> list[Molecule]:
    found = molecules.mixed(limit, n_gdb=200)
    n_heavy = {int((m.numbers > 1).sum()) for m in found}
    assert n_heavy <= {5, 6, 7, 8, 9}, n_heavy
    return found


def compile_all(
    settings: Settings, shapes: list[Shape], cache: str, workers: int | None
) -> dict[str, Any]:
    """Every program once, in processes that know only the disk cache."""
    ordered = sorted(shapes, key=lambda s: -s.n_ao)
    start = time.perf_counter()
    with Pool(workers) as pool:
        tasks = [(settings, shape, cache) for shape in ordered]
        found = [result for _, result in pool.each(compile_one, tasks)]
    wall = time.perf_counter() - start
    seconds = [f["seconds"] for f in found]
    from_disk = sum(f["cached"] for f in found)
    print(
        f"{len(found)} programs, {from_disk} of them from the disk cache: {sum(seconds):.0f} s in "
        f"all (slowest {max(seconds):.0f} s), {wall:.0f} s on the clock"
    )
    return {"seconds": sum(seconds), "wall": wall, "from_disk": from_disk, "programs": found}


def compile_one(settings: Settings, shape: Shape, cache: str) -> dict[str, Any]:
    """In a worker: compile or load one program."""
    enable_disk_cache(cache)
    event = Solver(settings).compile(shape)
    assert event is not None
    return {"shape": shape.label, "seconds": event.seconds, "cached": event.cached}


def padding(
    settings: Settings, mols: list[Molecule], cache: str, args: argparse.Namespace
) -> dict[str, Any]:
    """Time in padded shapes over time in exact shapes, summed over a random sample."""
    chosen = random.Random(0).sample(mols, min(args.sample, len(mols)))
    rows: list[Any] = []
    with Pool(args.workers) as pool:
        tasks = [(settings, mol, cache, args.repeat) for mol in chosen]
        for i, (padded, exact, label) in pool.each(time_padding, tasks):
            rows.append({"smiles": chosen[i].smiles, "padded": padded, "exact": exact})
            print(
                f"  {padded / exact:5.2f} = {1e3 * padded:6.1f} / {1e3 * exact:6.1f} ms per "
                f"conformer  {chosen[i].smiles} ({label})",
                flush=True,
            )
    ratio = sum(r["padded"] for r in rows) / sum(r["exact"] for r in rows)
    print(f"padding costs {100 * (ratio - 1):.0f} % of the unpadded time ({len(rows)} molecules)")
    return {"ratio": ratio, "rows": rows}


def time_padding(
    settings: Settings, mol: Molecule, cache: str, repeat: int
) -> tuple[float, float, str]:
    """In a worker: seconds per conformer in the padded and in the exact shape."""
    enable_disk_cache(cache)
    solver = Solver(settings)
    level = (settings.basis, settings.cart, settings.grid_level)
    padded, exact = solver.shape(mol), shape_of(mol.numbers, *level, pad=False)
    found = {shape: _seconds(solver, shape, mol, repeat) for shape in {padded, exact}}
    label = f"{exact.n_hydrogen} of {padded.n_hydrogen} H"
    return found[padded], found[exact], label


def _seconds(solver: Solver, shape: Shape, mol: Molecule, repeat: int) -> float:
    batch = [mol] * min(4, solver.batch_size(shape))
    solver.run(shape, batch)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        solver.run(shape, batch)
        times.append((time.perf_counter() - start) / len(batch))
    return float(np.median(times))


def verdict(report: dict[str, Any]) -> bool:
    """Whether every bound is met; says which is not."""
    missed = []
    if report["programs"] > MAX_PROGRAMS:
        missed.append(f"more than {MAX_PROGRAMS} programs")
    if report["cold"]["seconds"] > MAX_COMPILE_SECONDS:
        missed.append(f"compilation took more than {MAX_COMPILE_SECONDS:.0f} s")
    if report["warm"]["from_disk"] < report["programs"]:
        missed.append("the second run compiled")
    if "padding" in report and report["padding"]["ratio"] > MAX_PADDING:
        missed.append(f"padding costs more than {100 * (MAX_PADDING - 1):.0f} %")
    print("ok" if not missed else f"MISSED: {'; '.join(missed)}")
    return not missed


if __name__ == "__main__":
    sys.exit(main())
