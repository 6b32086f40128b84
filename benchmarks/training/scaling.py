"""Test MAE of the gap over the number of training rows, beside the published curve."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.training.fitting import BATCH, held_out, joined, settings_for, trained
from schnet.network.config import PRESETS
from schnet.training.prepare import prepare

PUBLISHED = ((100e3, 285.0), (1e6, 84.0), (10e6, 42.0), (100e6, 33.0))
"""Training rows and gap MAE in meV on QM1B, read off the figure of arXiv:2311.01135."""


Point = dict[str, float]
"""One training of the curve; errors in meV."""


def scaling(args: argparse.Namespace) -> tuple[Any, list[str]]:
    """The same test molecules for every size; points of other sizes in the file are kept."""
    everything = held_out(args, settings_for(args.data, "1,0,0", PRESETS["small"]), None)
    there = len(joined(prepare(everything), "train"))
    before = harness.earlier(args.out).get("scaling", [])
    points = [one for one in before if one["rows"] not in args.sizes]
    points += [point(args, size) for size in args.sizes if size <= there]
    points.sort(key=lambda one: one["rows"])
    maes = [one["mae"] for one in points]
    draw(args.figure, points)
    missed = [] if maes == sorted(maes, reverse=True) else [f"{maes} does not fall"]
    return points, missed


def point(args: argparse.Namespace, size: int) -> Point:
    """One training on this many rows."""
    epochs = max(args.least_epochs, round(args.updates * BATCH / size))
    settings = held_out(args, settings_for(args.data, "1,0,0", PRESETS["small"], epochs), size)
    schedule = replace(settings.schedule, valid_every=max(1, epochs // 40))
    seconds, errors = harness.timed(trained, replace(settings, schedule=schedule))
    print(
        f"{size:7d} rows, {epochs:4d} epochs: test MAE {errors.mae:6.1f} meV over "
        f"{errors.molecules}; mean predictor {errors.mean_predictor:.1f}",
        flush=True,
    )
    return {
        "rows": size,
        "epochs": epochs,
        "mae": errors.mae,
        "seconds": seconds,
        "mean_predictor": errors.mean_predictor,
        "test_molecules": errors.molecules,
    }


def draw(path: Path, points: list[Point]) -> None:
    """MAE over training rows, beside the published points."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 4.0), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    rows, maes = [p["rows"] for p in points], [p["mae"] for p in points]
    axes.loglog(rows, maes, "o-", label="this package, preset small")
    published = "SchNet 9M on QM1B (arXiv:2311.01135)"
    axes.loglog(*zip(*PUBLISHED, strict=True), "s--", color="gray", label=published)
    for at in zip(rows, maes, strict=True):
        axes.annotate(f"{at[1]:.0f}", at, textcoords="offset points", xytext=(4, 6))
    axes.set_xlabel("training rows")
    axes.set_ylabel("MAE of the gap, unseen molecules [meV]")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
