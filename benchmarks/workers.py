"""A process per core against threads in one process: conformers per second of the same molecules.

    python benchmarks/workers.py
    python benchmarks/workers.py --limit 8 --rounds 2

Processes are single-threaded and pinned, as `qm1b generate` starts them.  Threads share one
process and one solver.  Programs are compiled before the clock starts; the sides take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from pool import SINGLE, Pool, cores

os.environ.update(SINGLE)  # before JAX is imported: the threads are ours, not XLA's

from throughput import CASES, batches, chosen, load, one_round, run_ours

from pyscf_ipu import enable_disk_cache


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limit", type=int, default=64, help="molecules, one conformer each")
    parser.add_argument("--rounds", type=int, default=5)
    default = Path(__file__).parent / "results" / "workers.json"
    parser.add_argument("--out", type=Path, default=default)
    args = parser.parse_args()
    case = CASES["qm1b"]
    mols = chosen(case, args.limit)
    tasks = [(case.settings, shape, part) for shape, part in batches(case.settings, mols)]
    shapes = list({shape: None for _, shape, _ in tasks})
    cache = str(args.out.parent / ".." / ".cache" / "programs")
    enable_disk_cache(cache)
    load(case.settings, shapes, cache)
    rates: dict[str, list[float]] = {"processes": [], "threads": []}
    with (
        Pool(None, load, case.settings, shapes, cache) as processes,
        ThreadPoolExecutor(len(cores())) as threads,
    ):
        one_round(processes, run_ours, tasks)
        in_threads(threads, tasks)
        for _ in range(args.rounds):
            rates["processes"].append(len(mols) / one_round(processes, run_ours, tasks)[0])
            rates["threads"].append(len(mols) / in_threads(threads, tasks))
    for name, found in rates.items():
        print(f"{len(cores())} {name:10} {median(found):6.2f} conformers/s  "
              f"({min(found):.2f} to {max(found):.2f})")  # fmt: skip
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({"rates": rates, "conformers": len(mols)}, indent=1))
    return 0


def in_threads(pool: ThreadPoolExecutor, tasks: list[tuple]) -> float:
    start = time.perf_counter()
    list(pool.map(lambda task: run_ours(*task), tasks))
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
