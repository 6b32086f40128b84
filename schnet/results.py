"""Predictions as CSV, and the errors of a run on rows whose target is known."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from qm1b.store import atomic_write

from .pack import PackShape
from .predictor import Errors, Predictor, joined
from .samples import Samples
from .targets import Target

WHOLE = {"energy": "ev", "dipole": "debye"}
"""Units in which values stand in CSV files."""


@dataclass(frozen=True)
class Judged:
    """Rows, what was predicted for them, and the errors."""

    samples: Samples
    predicted: np.ndarray
    errors: Errors


def judge(predictor: Predictor, parts: Iterable[Samples]) -> Judged:
    """Predict rows whose targets are known; raises UserError if there are none."""
    everything = Samples.concatenate([part for part in parts if len(part)])
    samples = predictor.known(everything)
    predicted = predictor(samples)
    errors = predictor.summary(
        predicted,
        predictor.references.baseline(samples),
        samples.targets,
        len(everything) - len(samples),
    )
    return Judged(samples, predicted, errors)


def sentence(name: str, target: Target, errors: Errors) -> str:
    """The last line of an evaluation."""
    unit = target.display_unit
    return (
        f"{name} MAE {errors.mae:.2f} {unit} over {errors.molecules} rows; "
        f"mean predictor {errors.mean_predictor:.2f} {unit}"
    )


def column(target: Target, suffix: str = "") -> str:
    """The name of a column of CSV, with its unit."""
    return f"{target.name}{suffix}_{WHOLE[target.quantity]}"


def write_predictions(
    path: Path, predictor: Predictor, parts: Iterable[Samples], truth: bool
) -> int:
    """Predict all rows and write `lines` to a file; returns the number of rows.

    Raises:
        UserError: the file cannot be written, or a row cannot be predicted.
    """
    n = 0

    def write(stream: IO[bytes]) -> None:
        nonlocal n
        for number, line in enumerate(lines(predictor, parts, truth)):
            stream.write(line.encode())
            n = number

    atomic_write(path, write)
    return n


def lines(predictor: Predictor, parts: Iterable[Samples], truth: bool) -> Iterator[str]:
    """CSV: where the row stands in its file, SMILES, the prediction (nothing for an element that no
    training row had), and with `truth` the file's own value; first these columns' names."""
    target = predictor.target
    unit = target.per_atomic(WHOLE[target.quantity])
    yield _csv(["row", "smiles", column(target), *[column(target, "_in_file")] * truth])
    shape: PackShape | None = None
    for samples in parts:
        known, some = predictor.references.knows(samples), predictor.known(samples)
        if len(some):  # parts share a compiled program
            shape = joined(shape, predictor.shape(some))
        values = np.full(len(samples), np.nan)
        values[known] = predictor(some, shape) * unit
        numbers = np.stack([values, *[samples.targets * unit] * truth], axis=1)
        for key, smiles, two in zip(samples.keys, samples.smiles, numbers.tolist(), strict=True):
            yield _csv([key, smiles, *("" if np.isnan(x) else f"{x:.6f}" for x in two)])


def _csv(values: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()
