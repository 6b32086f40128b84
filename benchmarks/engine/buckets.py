"""How many programs 300 molecules need, how long they compile, and what padding costs.

Fresh processes, one per core, compile every program twice: with an empty disk cache, and again with
what the first run left there.  Then a sample of the molecules is timed in its padded shape and in
its exact shape.  For a quick look: --limit 8 --sample 2.
"""

import argparse
import random
import sys
import tempfile
from typing import Any

from benchmarks import harness, molecules
from benchmarks.pool import Pool
from pyscf_ipu import Molecule, Settings, Solver, enable_disk_cache
from pyscf_ipu.shapes.shape import Shape, shape_of

MAX_PROGRAMS = 15
MAX_COMPILE_SECONDS = 300.0
MAX_PADDING = 1.20


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--limit", type=int, default=300, help="molecules")
    parser.add_argument("--sample", type=int, default=12, help="molecules timed with padding")
    parser.add_argument("--repeat", type=int, default=5, help="timings, of which the median counts")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    parser.add_argument("--basis", default="sto-3g")
    parser.add_argument("--xc", default="b3lyp")
    parser.add_argument("--precision", default="float32")
    args = parser.parse_args()
    settings = Settings(basis=args.basis, xc=args.xc, precision=args.precision, grid_level=0)
    mols = molecules.mixed(args.limit, n_gdb=200)
    shapes = harness.grouped(mols, Solver(settings).shape)
    print(f"{len(mols)} molecules, {len(shapes)} programs (at most {MAX_PROGRAMS})")
    for shape, members in sorted(shapes.items(), key=lambda item: item[0].n_ao):
        print(f"  {len(members):4d} x {shape.label}")
    report: dict[str, Any] = {"molecules": len(mols), "programs": len(shapes)}
    with tempfile.TemporaryDirectory() as cache:
        for name in ("cold", "warm"):
            report[name] = compile_all(settings, list(shapes), cache, args.workers)
        if args.sample:
            report["padding"] = padding(settings, mols, cache, args)
    ratio = report["padding"]["ratio"] if args.sample else 1.0
    seconds, from_disk = report["cold"]["seconds"], report["warm"]["from_disk"]
    bounds = {
        f"at most {MAX_PROGRAMS} programs": len(shapes) <= MAX_PROGRAMS,
        f"compiled in {MAX_COMPILE_SECONDS:.0f} s": seconds <= MAX_COMPILE_SECONDS,
        "nothing compiled by the second run": from_disk >= len(shapes),
        f"padding costs at most {MAX_PADDING - 1:.0%}": ratio <= MAX_PADDING,
    }
    missed = [bound for bound, reached in bounds.items() if not reached]
    return harness.finish(args.out, report | {"reached": not missed}, missed)


def compile_all(
    settings: Settings, shapes: list[Shape], cache: str, workers: int | None
) -> dict[str, Any]:
    """Every program once, in processes that know only the disk cache."""
    tasks = [(settings, shape, cache) for shape in sorted(shapes, key=lambda s: -s.n_ao)]
    with Pool(workers) as pool:
        wall, done = harness.timed(list, pool.each(compile_one, tasks))
    found = [result for _, result in done]
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
    tasks = [(settings, mol, cache, args.repeat) for mol in chosen]
    with Pool(args.workers) as pool:
        rows = [row for _, row in pool.each(time_padding, tasks)]
    harness.table(rows)
    ratio = sum(r["padded"] for r in rows) / sum(r["exact"] for r in rows)
    print(f"padding costs {100 * (ratio - 1):.0f} % of the unpadded time ({len(rows)} molecules)")
    return {"ratio": ratio, "rows": rows}


def time_padding(settings: Settings, mol: Molecule, cache: str, repeat: int) -> dict[str, Any]:
    """In a worker: seconds per conformer in the padded and in the exact shape."""
    enable_disk_cache(cache)
    solver = Solver(settings)
    level = (settings.basis, settings.cart, settings.grid)
    padded, exact = solver.shape(mol), shape_of(mol.numbers, *level, pad=False)
    found = {shape: _seconds(solver, shape, mol, repeat) for shape in {padded, exact}}
    hydrogens = f"{exact.n_hydrogen} of {padded.n_hydrogen}"
    return {"smiles": mol.smiles, "padded": found[padded], "exact": found[exact], "H": hydrogens}


def _seconds(solver: Solver, shape: Shape, mol: Molecule, repeat: int) -> float:
    batch = [mol] * min(4, solver.batch_size(shape))
    solver.run(shape, batch)
    return harness.median_seconds(lambda: solver.run(shape, batch), repeat) / len(batch)


if __name__ == "__main__":
    sys.exit(main())
