"""A process per core against threads in one process: conformers per second of the same molecules.

Processes are single-threaded and pinned, as `qm1b generate` starts them.  Threads share one process
and one solver.  Programs are compiled before the clock starts; the sides take turns.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from benchmarks import harness
from benchmarks.engine.sides import load, run_ours
from benchmarks.engine.throughput import CASES, batches, chosen, one_round
from benchmarks.pool import Pool, cores


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--limit", type=int, default=64, help="molecules, one conformer each")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    settings = CASES["qm1b"].settings
    mols = chosen(CASES["qm1b"], args.limit)
    tasks = [(settings, shape, part, False) for shape, part in batches(settings, mols)]
    shapes = list({shape: None for _, shape, *_ in tasks})
    cache = str(harness.HERE / ".cache" / "programs")
    load(settings, shapes, cache, False)
    with (
        Pool(None, load, settings, shapes, cache, False) as processes,
        ThreadPoolExecutor(len(cores())) as threads,
    ):

        def in_threads() -> None:
            list(threads.map(lambda task: run_ours(*task), tasks))

        sides = {
            "processes": lambda: one_round(processes, run_ours, tasks)[0],
            "threads": lambda: len(mols) / harness.timed(in_threads)[0],
        }
        for side in sides.values():
            side()  # starts the processes; not timed
        rates = harness.in_turn(sides, args.rounds)
    print(f"{len(cores())} cores; conformers per second")
    harness.table(
        {"side": name, "median": median(found), "least": min(found), "most": max(found)}
        for name, found in rates.items()
    )
    return harness.finish(args.out, {"rates": rates, "conformers": len(mols)})


if __name__ == "__main__":
    sys.exit(main())
