"""Pictures of a run: the learning curve, and predictions against the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from schnet.network.predictor import Errors
from schnet.runs.logs import Line
from schnet.samples.targets import Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRAIN, VALID = "#1f77b4", "#d62728"


def learning_curve(path: Path, lines: Sequence[Line], target: Target, best_epoch: int) -> None:
    """Save a PNG of the MAE of training and validation rows by epoch."""
    from matplotlib.ticker import LogFormatter, MaxNLocator

    figure, axes = _figure()
    epochs = [line.epoch for line in lines]
    maes = [line.train_mae for line in lines]
    mark = "." if len(lines) == 1 else ""
    axes.plot(epochs, maes, color=TRAIN, marker=mark, label="training (running)")
    valid = [(line.epoch, line.valid_mae) for line in lines if np.isfinite(line.valid_mae)]
    if valid:
        axes.plot(*zip(*valid, strict=True), color=VALID, label="validation (averaged weights)")
        best = next((line for line in lines if line.epoch == best_epoch), None)
        if best is not None:
            label = f"best: {best.valid_mae:.1f} {target.display_unit}, epoch {best_epoch}"
            axes.plot(best.epoch, best.valid_mae, "o", color=VALID, label=label)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(LogFormatter())  # numbers, not powers of ten
    axes.yaxis.set_minor_formatter(LogFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"MAE of {target.name} [{target.display_unit}]")
    axes.legend(frameon=False)
    figure.savefig(path)


def parity(
    path: Path,
    truth: Float64[np.ndarray, " R"],
    predicted: Float64[np.ndarray, " R"],
    target: Target,
    errors: Errors,
) -> None:
    """Save a PNG of predictions against the truth, both given in the target's atomic unit."""
    factor = target.per_atomic(target.file_unit)
    figure, axes = _figure()
    axes.plot(truth * factor, predicted * factor, ".", ms=3, alpha=0.5, color=TRAIN)
    ends = np.array([min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]) * factor
    axes.plot(ends, ends, color="black", lw=0.8)
    name = {"ev": "eV", "debye": "D"}[target.file_unit]
    axes.set_xlabel(f"{target.name} in the data [{name}]")
    axes.set_ylabel(f"{target.name} predicted [{name}]")
    title = f"{errors.molecules} rows, MAE {errors.mae:.1f} {target.display_unit}"
    axes.set_title(title, fontsize=10)
    axes.set_aspect("equal", adjustable="box")
    figure.savefig(path)


def _figure() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0, 4.0), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
