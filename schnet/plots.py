"""Pictures of a run: how the error fell, and predictions against the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from .logs import Line
from .predictor import Errors
from .targets import Target

TRAIN, VALID = "#1f77b4", "#d62728"


def learning_curve(path: Path, lines: Sequence[Line], target: Target, best_epoch: int) -> None:
    """MAE of training and validation rows by epoch, as a PNG."""
    from matplotlib.ticker import LogFormatter, MaxNLocator

    figure, axes = _figure()
    epochs = [line.epoch for line in lines]
    mark = "." if len(lines) == 1 else ""
    axes.plot(epochs, [line.train_mae for line in lines], color=TRAIN, marker=mark,
              label="training (running)")  # fmt: skip
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
    _save(figure, path)


def parity(
    path: Path,
    truth: Float64[np.ndarray, " R"],
    predicted: Float64[np.ndarray, " R"],
    target: Target,
    errors: Errors,
) -> None:
    """Predictions against the truth, both in the target's atomic unit, as a PNG."""
    unit = {"energy": "ev", "dipole": "debye"}[target.quantity]
    factor = target.per_atomic(unit)
    figure, axes = _figure()
    axes.plot(truth * factor, predicted * factor, ".", ms=3, alpha=0.5, color=TRAIN)
    ends = np.array([min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]) * factor
    axes.plot(ends, ends, color="black", lw=0.8)
    name = {"ev": "eV", "debye": "D"}[unit]
    axes.set_xlabel(f"{target.name} in the data [{name}]")
    axes.set_ylabel(f"{target.name} predicted [{name}]")
    axes.set_title(
        f"{errors.molecules} rows, MAE {errors.mae:.1f} {target.display_unit}", fontsize=10
    )
    axes.set_aspect("equal", adjustable="box")
    _save(figure, path)


def _figure():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0, 4.0), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure, path: Path) -> None:
    figure.savefig(path)
