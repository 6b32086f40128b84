"""Make the figures of the QM1B paper again, from conformers that are computed here.

    python benchmarks/paper_figures.py --quick --out figures      # minutes, few molecules
    python benchmarks/paper_figures.py --out figures              # hours
    python benchmarks/paper_figures.py --quick --out figures scf_cycles five_carbons

Each figure is a PNG and a PDF with its numbers as CSV beside it. The conformers are kept in the
folder, so a second call computes only what is missing. docs/figures.md explains the figures.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, as its name says

from benchmarks.paper import ladder, speed, training
from paper import dataset, errors, operations
from paper.drawing import Job

FIGURES: dict[str, Callable[[Job], None]] = {
    "error_histograms": errors.histograms,
    "error_over_size": errors.over_size,
    "scf_cycles": errors.each_cycle,
    "functional_errors": operations.functional_errors,
    "coulomb_exchange_errors": operations.coulomb_and_exchange,
    "integral_bytes": operations.bytes_of_integrals,
    "five_carbons": speed.five_carbons,
    "dataset_histograms": dataset.histograms,
    "gap_spread": dataset.gap_spread,
    "geometries": dataset.geometries,
    "schnet_rows": training.over_rows,
    "schnet_size": training.over_size,
    "schnet_recipes": training.recipes,
    "schnet_ladder": ladder.ladder,
}
"""By the name of their files, in the order of the page."""


def main(arguments: list[str] | None = None) -> int:
    """Make the figures; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("figures", nargs="*", help=f"any of {', '.join(FIGURES)}; default: all")
    parser.add_argument("--out", type=Path, required=True, help="folder for the figures")
    parser.add_argument("--quick", action="store_true", help="every figure on few molecules")
    text = "leave out times of this machine, if other work shares it"
    parser.add_argument("--no-times", action="store_true", help=text)
    args = parser.parse_args(arguments)
    unknown = sorted(set(args.figures) - set(FIGURES))
    if unknown:
        parser.error(f"no figure {', '.join(unknown)}: there are {', '.join(FIGURES)}")
    job, failed = Job(args.out, args.quick, times=not args.no_times), []
    for name in args.figures or FIGURES:
        start, cpu = time.monotonic(), _cpu_seconds()
        print(f"{name} ...", flush=True)
        FIGURES[name](job)
        if not (args.out / f"{name}.png").exists():
            failed.append(name)
        seconds = f"{time.monotonic() - start:.0f} s, {_cpu_seconds() - cpu:.0f} s of CPU time"
        print(f"{name}: {seconds}", flush=True)
    return 1 if failed else 0


def _cpu_seconds() -> float:
    """Of this process, and of those that it has started and that have ended."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    sys.exit(main())
