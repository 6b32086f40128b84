"""Time for one molecule of five carbons in three basis sets: PySCF, ours, and IPUs.

The workload is that of PySCF-IPU's benchmark: 20 SCF cycles, grid level 0, float32. It took C5H12
in STO-3G and a bare row of five carbons in the others.  The full form keeps the two larger sets,
which take minutes, in `benchmarks/data/five_carbons.json`, and the quick form shows them.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import HERE, save
from benchmarks.reference import build
from paper.drawing import (
    BLUE,
    GREEN,
    GREY,
    PUBLISHED_CYCLES,
    RED,
    Job,
    canvas,
    keep,
    legend,
    plain,
)
from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.ipu import priced_target
from pyscf_ipu.ipu.engine.command import price_rks
from pyscf_ipu.molecule.named.argument import find_molecule

CASES = {"sto-3g": "CCCCC", "6-31g": "c_5", "6-31g*": "c_5"}
QUICK = ("sto-3g",)
"""The sets that the quick form computes; of the others it shows what the full form kept."""

KEPT = HERE / "data" / "five_carbons.json"

NAMES = {"CCCCC": "C5H12", "c_5": "C5, a bare row"}
PUBLISHED_CLOCK_HZ = 1.825e9
ROUNDS = 3


class Computed(NamedTuple):
    """What is computed for a basis set; NaN for what is not."""

    pyscf_s: float
    ours_s: float
    bow_low_s: float
    bow_high_s: float
    bow_low_cycles: float
    bow_high_cycles: float


NOTHING = Computed(*[nan] * 6)


def five_carbons(job: Job, kept: Path = KEPT) -> None:
    """The bars of the figure, and the table."""
    results = _results(job, kept)
    figure = canvas(1, 1, width=7.0, height=3.6)
    axes, rows = figure.subplots(), []
    for i, basis in enumerate(CASES):
        published = PUBLISHED_CYCLES[basis] / PUBLISHED_CLOCK_HZ
        result = results[basis]
        bars = (
            (result.pyscf_s, GREY, "PySCF, one thread"),
            (result.ours_s, BLUE, "ours, this machine"),
            (published, RED, "PySCF-IPU, one IPU (published cycles)"),
        )
        for k, (seconds, colour, label) in enumerate(bars):
            if isnan(seconds):
                continue
            place = i + 0.2 * (k - 1.5)
            axes.bar(place, 1e3 * seconds, 0.18, color=colour, label=None if i else label)
            text = f"{1e3 * seconds:,.0f}" if seconds > 0.1 else f"{1e3 * seconds:.3g}"
            axes.text(place, 1.05e3 * seconds, text, ha="center", fontsize=7)
        low, high = 1e3 * result.bow_low_s, 1e3 * result.bow_high_s
        label = None if i else "simulated Bow, low to high"
        axes.bar(i + 0.3, high - low, 0.18, bottom=low, color=GREEN, label=label)
        axes.text(i + 0.22, 1.05 * high, f"{low:.3g} to {high:.3g}", fontsize=7)
        rows.append((basis, NAMES[CASES[basis]], *result, published, PUBLISHED_CYCLES[basis]))
    axes.set_yscale("log")
    names = [f"{NAMES[CASES[basis]]}\n{basis.upper()}" for basis in CASES]
    axes.set_xticks(range(len(CASES)), names)
    plain(axes, "", "time of one molecule (ms)", "B3LYP (VWN5), grid level 0, 20 cycles")
    axes.set_ylim(1, axes.get_ylim()[1] * 8)
    axes.set_xlim(-0.6, len(CASES) - 0.4)
    legend(axes, ncols=2)
    header = ("basis", "molecule", *Computed._fields, "published_s", "published_cycles")
    keep(job, "five_carbons", figure, header, rows)


def _results(job: Job, kept: Path) -> dict[str, Computed]:
    """Of every basis set; those that the quick form does not compute are from `kept`."""
    if job.quick:
        slow = {
            basis: NOTHING._replace(**row) for basis, row in json.loads(kept.read_text()).items()
        }
        return {basis: _computed(job, basis) if basis in QUICK else slow[basis] for basis in CASES}
    results = {basis: _computed(job, basis) for basis in CASES}
    save(kept, {basis: _known(row) for basis, row in results.items() if basis not in QUICK})
    return results


def _known(result: Computed) -> dict[str, float]:
    return {name: value for name, value in result._asdict().items() if not isnan(value)}


def _computed(job: Job, basis: str) -> Computed:
    """What the simulated IPU costs, and times of this machine unless they are left out."""
    mol = find_molecule(CASES[basis])
    level = Settings(xc="b3lyp5", basis=basis, grid_level=0, fixed_cycles=20)
    price = price_rks(mol, level, priced_target("bow"))
    return Computed(
        _pyscf_seconds(mol, level) if job.times else nan,
        _our_seconds(mol, level) if job.times else nan,
        price.seconds.low,
        price.seconds.high,
        price.cycles.low,
        price.cycles.high,
    )


def _our_seconds(mol: Molecule, level: Settings) -> float:
    solver = Solver(level)
    run = lambda: rks(mol, solver=solver, workers=1)  # noqa: E731
    run()
    return _least(run)


def _pyscf_seconds(mol: Molecule, level: Settings) -> float:
    """An SCF of 20 cycles; PySCF's own guess and grid are part of it, as they are of ours."""
    from pyscf import lib

    lib.num_threads(1)

    def run() -> None:
        field = build(mol, replace(level, precision="float64"))
        field.conv_tol, field.max_cycle, field.verbose = 1e-30, 20, 0
        field.kernel()

    return _least(run)


def _least(run: Callable[[], object]) -> float:
    """The least of some rounds, in seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
