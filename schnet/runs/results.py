"""Predictions as CSV, and the errors of a run on rows with a known target."""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from qm1b.process.files import atomic_write
from schnet.network.predictor import Errors, Predictor
from schnet.samples.samples import Samples
from schnet.samples.targets import Target


class Judged(NamedTuple):
    """Rows, their predictions, and the errors."""

    samples: Samples
    predicted: np.ndarray
    errors: Errors


def judge(predictor: Predictor, parts: Iterable[Samples]) -> Judged:
    """Predict rows with a known target; raises UserError if there are none."""
    everything = Samples.concatenate([part for part in parts if len(part)])
    samples = predictor.known(everything)
    predicted = predictor(samples)
    baseline = predictor.references.baseline(samples)
    left_out = len(everything) - len(samples)
    errors = predictor.summary(predicted, baseline, samples.targets, left_out)
    return Judged(samples, predicted, errors)


def sentence(name: str, target: Target, errors: Errors) -> str:
    """The last line of an evaluation."""
    unit = target.display_unit
    return (
        f"{name} MAE {errors.mae:.2f} {unit} over {errors.molecules} rows; "
        f"mean predictor {errors.mean_predictor:.2f} {unit}"
    )


def write_predictions(
    path: Path, predictor: Predictor, parts: Iterable[Samples], truth: bool
) -> int:
    """Write `lines` to a file; returns the number of rows. Raises UserError if that fails."""
    rows = -1  # the first line has the names of columns

    def write(stream: IO[bytes]) -> None:
        nonlocal rows
        for line in lines(predictor, parts, truth):
            stream.write(line.encode())
            rows += 1

    atomic_write(path, write)
    return rows


def lines(predictor: Predictor, parts: Iterable[Samples], truth: bool) -> Iterator[str]:
    """CSV of all rows: place in the file, SMILES, prediction, and with `truth` the file's value.

    The first line has the names of columns. A row with an element that no training row had has no
    prediction.
    """
    target = predictor.target
    unit = target.per_atomic(target.file_unit)
    ends = ["", "_in_file"] if truth else [""]
    yield _csv(["row", "smiles", *(f"{target.name}{end}_{target.file_unit}" for end in ends)])
    for samples, _, predicted in predictor.stream(parts):
        values = np.full(len(samples), np.nan)
        values[predictor.references.covers(samples)] = predicted * unit
        numbers = np.stack([values, *[samples.targets * unit] * truth], axis=1)
        for key, smiles, two in zip(samples.keys, samples.smiles, numbers.tolist(), strict=True):
            yield _csv([key, smiles, *("" if np.isnan(x) else f"{x:.6f}" for x in two)])


def _csv(values: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()
