"""The ladder: how much nearer to QM9 does a better level of theory, or geometry, bring a network?

A rung is a level of theory with a kind of geometry. The same molecules are computed on every rung,
a network learns their gaps, and then QM9's own gaps from few molecules.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.paper.training import QM9, error_of, small_training
from paper import conformers
from paper.drawing import BLUE, GREEN, GREY, ORANGE, Job, canvas, keep, legend, plain
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.settings import Settings
from qm1b import load
from qm1b.commands.generate import SAMPLE
from qm1b.settings import COARSE, PRESETS, RunSettings

LEVELS = {True: ("sto-3g", "6-31g"), False: ("sto-3g", "6-31g", "6-31g*", "6-31g(2df,p)")}
GEOMETRIES = {"ETKDG": "none", "MMFF": "mmff"}
"""RDKit's conformers as they are, and relaxed by a force field: values of --relax."""

MOLECULES, CONFORMERS = {True: 40, False: 300}, {True: 2, False: 20}
EXAMPLES, FINE_EXAMPLES = {True: 6_000, False: 200_000}, {True: 2_000, False: 20_000}
SPLITS = {True: 2, False: 8}
"""How many splits of QM9's molecules, which are so few that one split says little."""

Row = tuple[Any, ...]
"""Of the table: basis, geometry, then numbers in meV."""


def ladder(job: Job) -> None:
    """Test errors on each rung, and of QM9's own gaps after a training on it."""
    folders = {
        (basis, geometry): rung(job, basis, geometry)
        for basis, geometry in product(LEVELS[job.quick], GEOMETRIES)
    }
    first = gaps(next(iter(folders.values())))
    rows: list[Row] = []
    with TemporaryDirectory() as scratch:
        for (basis, geometry), folder in folders.items():
            kept = Path(scratch) / folder.name
            error, mean = error_of(small_training(job, folder, examples=EXAMPLES[job.quick]), kept)
            distance = apart(first, gaps(folder))
            rows.append((basis, geometry, error, mean, *distance, *_on_qm9(job, kept)))
        rows.append(("none", "none", *[nan] * 4, *_on_qm9(job, None)))
    header = ["basis", "geometry", "test_mae_mev", "mean_mae_mev", "from_first_mev"]
    header += [
        "from_first_after_line_mev",
        *(f"qm9_test_mae_{seed}_mev" for seed in range(SPLITS[job.quick])),
    ]
    keep(job, "schnet_ladder", _picture(rows), header, rows)


def rung(job: Job, basis: str, geometry: str) -> Path:
    """The folder of a rung's rows, which are computed if they are not there."""
    level = PRESETS["qm1b"] if basis == "sto-3g" else _level(basis)
    settings = RunSettings(
        level,
        CONFORMERS[job.quick],
        limit=MOLECULES[job.quick],
        input_format="smiles",
        relax=GEOMETRIES[geometry],
        padding=COARSE,
    )
    name = f"{basis}-{geometry}".replace("*", "s").replace(",", "").lower()
    folder = job.out / "data" / f"ladder-{job.data.name}" / name
    return conformers.computed(SAMPLE, folder, settings).folder


def _level(basis: str) -> Settings:
    """QM9's, with another basis."""
    level = replace(PRESETS["qm1b"], xc="b3lyp", basis=basis)
    return replace(level, cart=Settings.preset("qm9").cart) if "(" in basis else level


def gaps(folder: Path) -> dict[tuple[int, int], float]:
    """Gaps of the converged rows in eV, by line and conformer."""
    return {
        (row["line"], row["conformer"]): HARTREE_TO_EV * (row["lumo"] - row["homo"])
        for row in load(folder, ["line", "conformer", "lumo", "homo", "status"])
        if row["status"] == "converged"
    }


def apart(
    one: dict[tuple[int, int], float], other: dict[tuple[int, int], float]
) -> tuple[float, float]:
    """Mean absolute difference of the gaps of common rows in meV, before and after the best line.

    What a line takes away a network could learn from two numbers.
    """
    both = sorted(set(one) & set(other))
    x, y = (np.array([of[place] for place in both]) for of in (one, other))
    line = np.polyval(np.polyfit(x, y, 1), x)
    return 1e3 * float(np.mean(np.abs(x - y))), 1e3 * float(np.mean(np.abs(line - y)))


def _on_qm9(job: Job, init: Path | None) -> list[float]:
    """Test errors of QM9's own gaps after a training on 40 of its molecules, from these weights."""
    found = []
    for seed in range(SPLITS[job.quick]):
        fine = small_training(
            job, QM9, "40,8,12", examples=FINE_EXAMPLES[job.quick], split_seed=seed
        )
        schedule = replace(fine.schedule, pack_molecules=8)
        found.append(error_of(replace(fine, schedule=schedule, init=init))[0])
    return found


def _picture(rows: Sequence[Row]) -> Figure:
    """Left the rungs' own errors, right those of QM9's gaps; the last row is without a rung."""
    figure = canvas(2, 1, width=4.4)
    left, right = figure.subplots(1, 2)
    names = [f"{basis}\n{geometry}" for basis, geometry, *_ in rows[:-1]]
    at = np.arange(len(names))
    own, mean, apart = (np.array([row[k] for row in rows[:-1]]) for k in (2, 3, 5))
    left.bar(at - 0.27, mean, 0.25, color=GREY, label="always the mean")
    left.bar(at, own, 0.25, color=BLUE, label="trained and tested on the rung")
    left.bar(at + 0.27, apart, 0.25, color=GREEN, label="off the first rung, after the best line")
    for place, values in ((-0.27, mean), (0, own), (0.27, apart)):
        for k, value in zip(at, values, strict=True):
            left.text(k + place, value, f"{value:.0f}", ha="center", va="bottom", fontsize=6)
    left.set_xticks(at, names, fontsize=7)
    plain(left, "", "mean absolute error of the gap (meV)").set_ylim(top=1.5 * np.max(mean))
    legend(left, loc="upper right")
    for k, row in enumerate(rows):
        errors = np.array(row[6:])
        right.bar(k, errors.mean(), 0.5, color=GREY if k == len(at) else ORANGE)
        right.plot([k] * len(errors), errors, ".", color="black", ms=4)
        right.text(k + 0.27, errors.mean(), f"{errors.mean():.0f}", fontsize=7, va="center")
    right.set_xticks(range(len(rows)), [*names, "from\nscratch"], fontsize=7)
    right.set_xlim(-0.5, len(rows) - 0.2)
    plain(right, "", "test MAE of QM9's own gaps (meV)", "after training on 40 molecules of QM9")
    return figure
