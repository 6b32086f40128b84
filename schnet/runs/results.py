"""Predictions as CSV, and the errors of a run on rows with a known target."""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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


@dataclass
class Tally:
    """Rows of a prediction: all, and those without one."""

    rows: int = 0
    without: int = 0

    def sentence(self) -> str:
        """What to tell of rows without a prediction; '' if there are none."""
        if not self.without:
            return ""
        return f"{self.without} of {self.rows} rows have no prediction; the column reason says why"


def write_predictions(
    path: Path,
    predictor: Predictor,
    parts: Iterable[Samples],
    truth: bool,
    tally: Tally | None = None,
) -> None:
    """Write `lines` to a file; raises UserError if that fails."""

    def write(stream: IO[bytes]) -> None:
        for line in lines(predictor, parts, truth, tally):
            stream.write(line.encode())

    atomic_write(path, write)


def lines(
    predictor: Predictor, parts: Iterable[Samples], truth: bool, tally: Tally | None = None
) -> Iterator[str]:
    """CSV of all rows: place in the file, SMILES, prediction.

    The first line has the names of columns.

    Args:
        predictor: the network.
        parts: the rows.
        truth: add a column with the file's value; without, one with the reason why a row has no
            prediction.
        tally: counts the rows.
    """
    target = predictor.target
    unit = target.per_atomic(target.file_unit)
    names = [f"{target.name}{end}_{target.file_unit}" for end in ("", "_in_file")]
    yield _csv(["row", "smiles", names[0], names[1] if truth else "reason"])
    for samples, _, predicted in predictor.stream(parts):
        reasons = predictor.reasons(samples)
        values = np.full(len(samples), np.nan)
        values[reasons == ""] = predicted * unit
        last = [*map(_digits, samples.targets * unit)] if truth else reasons.tolist()
        for *texts, value, other in zip(samples.keys, samples.smiles, values, last, strict=True):
            yield _csv([*texts, _digits(value), other])
        if tally is not None:
            tally.rows += len(samples)
            tally.without += int((reasons != "").sum())


def _digits(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.6f}"


def _csv(values: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()
