"""Predictions as CSV, and the errors of a run on rows with a known target, as text and JSON."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyscf_ipu.base.terminal import counted
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.elements.spellings import SYMBOLS
from qm1b.rows.dropped import guarded
from qm1b.storage.files import atomic_write, write_text
from schnet.network.predictor import Predictor
from schnet.samples.accuracy import Errors, Predicted
from schnet.samples.samples import Samples
from schnet.samples.targets import FORCE_DISPLAY_UNIT, FORCE_FILE_UNIT, FORCES, UNITS, Target


class Judged(NamedTuple):
    """Rows, their predictions, and the errors."""

    samples: Samples
    predicted: Predicted
    errors: Errors


def judge(predictor: Predictor, parts: Iterable[Samples]) -> Judged:
    """Predict rows with a known target; raises UserError if there are none."""
    everything = Samples.concatenate([part for part in parts if len(part)])
    samples = predictor.known(everything)
    predicted = predictor.predicted(samples)
    baseline = predictor.references.baseline(samples)
    left_out = len(everything) - len(samples)
    known = Predicted.in_file(samples)
    errors = Errors.of(predictor.target, predicted, known, baseline=baseline, left_out=left_out)
    return Judged(samples, predicted, errors)


def sentence(name: str, target: Target, errors: Errors) -> str:
    """The last line of an evaluation."""
    unit = target.display_unit
    of_forces = ""
    if errors.forces is not None:
        of_forces = (
            f"; forces {errors.forces.mae:.2f} {FORCE_DISPLAY_UNIT}, no forces "
            f"{errors.forces.zero_forces:.2f} {FORCE_DISPLAY_UNIT}"
        )
    return (
        f"{name} MAE {errors.mae:.2f} {unit} over {counted(errors.molecules, 'row')}; "
        f"{errors.simplest} {errors.mean_predictor:.2f} {unit}{of_forces}"
    )


def rmse_sentence(target: Target, errors: Errors) -> str:
    """The line before it."""
    text = f"RMSE {errors.rmse:.2f} {target.display_unit}"
    if errors.forces is None:
        return text
    return f"{text}; forces {errors.forces.rmse:.2f} {FORCE_DISPLAY_UNIT}"


def write_errors(path: Path, target: Target, errors: Errors) -> None:
    """Write errors as JSON, each with its unit; raises UserError if that fails."""
    record: dict[str, object] = {"target": target.name, "rows": errors.molecules}
    record |= {"left_out": errors.left_out, "unit": target.display_unit, "mae": errors.mae}
    record |= {"rmse": errors.rmse, errors.simplest.replace(" ", "_"): errors.mean_predictor}
    if errors.forces is not None:
        record["forces"] = {"unit": FORCE_DISPLAY_UNIT, **errors.forces._asdict()}
    write_text(path, json.dumps(record, indent=2) + "\n")


WITHOUT, DOUBTED = "without a prediction", "in doubt"
"""What is counted of the rows of a prediction, besides all of them (ROWS)."""
ROWS = "rows"


def tally_sentence(tally: Counter[str]) -> str:
    """What to tell of rows without a prediction, or with a doubt; '' if there are none."""
    rows = counted(tally[ROWS], "row")
    parts = ", ".join(f"{tally[x]} of {rows} {x}" for x in (WITHOUT, DOUBTED) if tally[x])
    return f"{parts}; the column reason says why" if parts else ""


def write_rows(path: Path, rows: Iterable[str]) -> None:
    """Write `lines` to a file; raises UserError if that fails."""
    atomic_write(path, lambda stream: stream.writelines(row.encode() for row in rows))


def lines(
    predictor: Predictor, parts: Iterable[Samples], truth: bool, tally: Counter[str] | None = None
) -> Iterator[str]:
    """CSV of all rows: place in the file, SMILES, prediction.

    The first line has the names of columns. Forces are the x, y and z of all atoms in their order,
    with spaces between. Without `truth` they come with the atoms and the positions, which a file of
    SMILES does not have.

    Args:
        predictor: the network.
        parts: the rows.
        truth: add a column with the file's value; without, one with the reason why a row has no
            prediction, or a doubtful one, and one with its name in the file.
        tally: counts the rows.
    """
    target = predictor.target
    unit = target.per_atomic(target.file_unit)
    names = [f"{target.number}{end}_{target.file_unit}" for end in ("", "_in_file")]
    forces = [f"{FORCES}{end}_{FORCE_FILE_UNIT}" for end in ("", "_in_file")]
    columns = [names[0], names[1] if truth else "reason"]
    if target.has_forces:
        columns += forces if truth else [*forces[:1], "atoms", "positions_angstrom"]
    yield _csv(["row", "smiles", *columns, *([] if truth else ["id"])])
    for samples, known, predicted in predictor.stream(parts):
        reasons = predictor.reasons(samples)
        values = np.full(len(samples), np.nan)
        values[reasons == ""] = predicted.values * unit
        doubts = predictor.reasons(samples, doubts=True)
        last = [*map(_digits, samples.targets * unit)] if truth else doubts.tolist()
        texts = [samples.keys, samples.smiles, map(_digits, values), last]
        if target.has_forces:
            here = np.full(len(samples), "", object)
            here[reasons == ""] = _force_texts(predicted.forces, known)
            texts += [
                here,
                *([_force_texts(samples.forces, samples)] if truth else _where(samples)),
            ]
        yield from map(
            _csv, zip(*texts, *([] if truth else [map(guarded, samples.ids)]), strict=True)
        )
        if tally is not None:
            counts = {WITHOUT: (reasons != "").sum(), DOUBTED: (doubts != reasons).sum()}
            tally.update({ROWS: len(samples)} | {k: int(n) for k, n in counts.items()})


def _force_texts(forces: np.ndarray | None, samples: Samples) -> list[str]:
    """The components of each row, atom by atom."""
    assert forces is not None
    values = forces * UNITS["force"][FORCE_FILE_UNIT]
    rows = np.split(values, samples.atom_offset[1:-1])
    return [" ".join(map(_digits, row.ravel().tolist())) for row in rows[: len(samples)]]


def _where(samples: Samples) -> list[list[str]]:
    """The elements of each row, and the positions of its atoms in Angstrom."""
    ends = samples.atom_offset[1:-1]
    symbols = np.array(SYMBOLS, object)[samples.numbers]
    positions = np.split(samples.positions_bohr * BOHR_TO_ANGSTROM, ends)
    return [
        [" ".join(row) for row in np.split(symbols, ends)][: len(samples)],
        [" ".join(map(_digits, row.ravel().tolist())) for row in positions][: len(samples)],
    ]


def _digits(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.6f}"


def _csv(values: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()
