"""Pictures of a run: the learning curve, and predictions against the truth; forces, if they are
learned, have a second panel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from qm1b.storage.files import atomic_write
from schnet.runs.logs import EpochLine
from schnet.samples.accuracy import Errors, Predicted
from schnet.samples.targets import FORCE_DISPLAY_UNIT, FORCE_FILE_UNIT, FORCES, UNITS, Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRAIN, VALID = "#1f77b4", "#d62728"


def learning_curve(path: Path, lines: Sequence[EpochLine], target: Target, best_epoch: int) -> None:
    """Save a PNG of the MAE of training and validation rows by epoch."""
    figure, panels = _figure(2 if target.has_forces else 1)
    of_forces = ("forces_mae", FORCES, FORCE_DISPLAY_UNIT)
    parts = (("mae", target.number, target.display_unit), of_forces)
    for axes, (mae, what, unit) in zip(panels, parts, strict=False):
        train, valid = (
            {line.epoch: getattr(line, f"{side}_{mae}") for line in lines}
            for side in ("train", "valid")
        )
        _curves(axes, train, valid, best_epoch=best_epoch, unit=unit)
        axes.set_ylabel(f"MAE of {what} [{unit}]")
    _save(figure, path)


def _curves(
    axes: Axes, train: dict[int, float], valid: dict[int, float], best_epoch: int, unit: str
) -> None:
    """The MAE of both sides by epoch."""
    from matplotlib.ticker import LogFormatter, MaxNLocator

    mark = "." if len(train) == 1 else ""
    axes.plot([*train], [*train.values()], color=TRAIN, marker=mark, label="training (running)")
    judged = {epoch: mae for epoch, mae in valid.items() if np.isfinite(mae)}
    if judged:
        axes.plot([*judged], [*judged.values()], color=VALID, label="validation (averaged weights)")
        if best_epoch in judged:
            best = judged[best_epoch]
            label = f"best: {best:.1f} {unit}, epoch {best_epoch}"
            axes.plot(best_epoch, best, "o", color=VALID, label=label)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(LogFormatter())  # numbers, not powers of ten
    axes.yaxis.set_minor_formatter(LogFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch")
    axes.legend(frameon=False)


def parity(
    path: Path, known: Predicted, predicted: Predicted, target: Target, errors: Errors
) -> None:
    """Save a PNG of predictions against what the file says."""
    factor = target.per_atomic(target.file_unit)
    name = {"ev": "eV", "debye": "D"}[target.file_unit]
    figure, panels = _figure(2 if errors.forces else 1)
    _against(
        panels[0], known.values * factor, predicted.values * factor, what=target.number, unit=name
    )
    title = f"{errors.molecules} rows, MAE {errors.mae:.1f} {target.display_unit}"
    panels[0].set_title(title, fontsize=10)
    if errors.forces is not None and known.forces is not None and predicted.forces is not None:
        factor = UNITS["force"][FORCE_FILE_UNIT]
        truth, components = known.forces.ravel() * factor, predicted.forces.ravel() * factor
        _against(panels[1], truth, components, what="forces", unit="eV/Angstrom")
        panels[1].set_title(f"MAE {errors.forces.mae:.1f} {FORCE_DISPLAY_UNIT}", fontsize=10)
    _save(figure, path)


def _against(
    axes: Axes,
    truth: Float64[np.ndarray, " n"],
    predicted: Float64[np.ndarray, " n"],
    what: str,
    unit: str,
) -> None:
    axes.plot(truth, predicted, ".", ms=3, alpha=0.5, color=TRAIN)
    ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
    axes.plot(ends, ends, color="black", lw=0.8)
    axes.set_xlabel(f"{what} in the data [{unit}]")
    axes.set_ylabel(f"{what} predicted [{unit}]")
    axes.set_aspect("equal", adjustable="box")


def _save(figure: Figure, path: Path) -> None:
    atomic_write(path, lambda stream: figure.savefig(stream, format="png"))


def _figure(panels: int) -> tuple[Figure, Sequence[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0 * panels, 4.0), dpi=150, layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0].tolist()
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes
