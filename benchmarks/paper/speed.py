"""Time for one molecule of five carbons in three basis sets: PySCF, ours, and IPUs.

The workload is that of PySCF-IPU's benchmark: 20 SCF cycles, grid level 0, float32. It took C5H12
in STO-3G and a bare row of five carbons in the others.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from math import isnan, nan

from benchmarks.paper.drawing import (
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
from benchmarks.reference import build
from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.ipu.command import profile_rks
from pyscf_ipu.nanodft.molecule_argument import find_molecule

CASES = {"sto-3g": "CCCCC", "6-31g": "c_5", "6-31g*": "c_5"}
NAMES = {"CCCCC": "C5H12", "c_5": "C5, a bare row"}
PUBLISHED_CLOCK_HZ = 1.825e9
ROUNDS = 3


def five_carbons(job: Job) -> None:
    """The bars of the figure, and the table."""
    figure = canvas(1, 1, width=7.0, height=3.6)
    axes, rows = figure.subplots(), []
    for i, basis in enumerate(CASES):
        mol = find_molecule(CASES[basis])
        level = Settings(xc="b3lyp5", basis=basis, grid_level=0, fixed_cycles=20)
        profile = profile_rks(mol, level, "bow")
        low, high = profile.seconds.low, profile.seconds.high
        published = PUBLISHED_CYCLES[basis] / PUBLISHED_CLOCK_HZ
        cpu = _pyscf_seconds(mol, level) if job.times else nan
        ours = _our_seconds(mol, level) if job.times else nan
        bars = (
            (cpu, GREY, "PySCF, one thread"),
            (ours, BLUE, "ours, this machine"),
            (published, RED, "PySCF-IPU, one IPU (published cycles)"),
        )
        for k, (seconds, colour, label) in enumerate(bars):
            if isnan(seconds):
                continue
            place = i + 0.2 * (k - 1.5)
            axes.bar(place, 1e3 * seconds, 0.18, color=colour, label=None if i else label)
            text = f"{1e3 * seconds:,.0f}" if seconds > 0.1 else f"{1e3 * seconds:.3g}"
            axes.text(place, 1.05e3 * seconds, text, ha="center", fontsize=7)
        label = None if i else "simulated Bow, low to high"
        axes.bar(i + 0.3, 1e3 * (high - low), 0.18, bottom=1e3 * low, color=GREEN, label=label)
        text = f"{1e3 * low:.3g} to {1e3 * high:.3g}"
        axes.text(i + 0.3, 1.05e3 * high, text, ha="center", fontsize=7)
        times = (cpu, ours, low, high, profile.cycles.low, profile.cycles.high, published)
        rows.append((basis, NAMES[CASES[basis]], *times, PUBLISHED_CYCLES[basis]))
    axes.set_yscale("log")
    names = [f"{NAMES[CASES[basis]]}\n{basis.upper()}" for basis in CASES]
    axes.set_xticks(range(len(CASES)), names)
    plain(axes, "", "time of one molecule (ms)", "B3LYP (VWN5), grid level 0, 20 cycles")
    axes.set_ylim(1, axes.get_ylim()[1] * 8)
    axes.set_xlim(-0.6, len(CASES) - 0.4)
    legend(axes, ncols=2)
    header = "basis molecule pyscf_s ours_s bow_low_s bow_high_s bow_low_cycles bow_high_cycles"
    header += " published_s published_cycles"
    keep(job, "five_carbons", figure, header.split(), rows)


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
