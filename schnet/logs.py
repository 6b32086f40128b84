"""What a training says while it runs: a CSV file, TensorBoard's files, lines on the screen.

A training that goes on after a kill cuts the CSV back to its checkpoint, so that it reads as if
nothing had happened. No service is called.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from qm1b.store import atomic_write

from .errors import UserError


@dataclass(frozen=True)
class Line:
    """One epoch."""

    epoch: int
    """From 1."""
    updates: int
    """Since the beginning."""
    learning_rate: float
    train_loss: float
    """Mean over the epoch, with the weights as they were."""
    train_mae: float
    """In the target's display unit, likewise."""
    valid_mae: float
    """In the target's display unit, with the averaged weights; NaN without validation rows."""
    gradient_norm: float
    """Largest of the epoch, before clipping."""
    graphs_per_s: float
    seconds: float
    """Since the beginning, pauses not counted."""


def read(path: Path) -> list[Line]:
    """The lines of a log, none if there is no file; raises UserError if it is damaged."""
    if not path.exists():
        return []
    kinds: dict[str, Any] = {f.name: int if f.type == "int" else float for f in fields(Line)}
    with open(path, newline="") as stream:
        rows = csv.DictReader(stream)
        try:
            return [Line(**{name: kind(row[name]) for name, kind in kinds.items()}) for row in rows]
        except (KeyError, TypeError, ValueError):
            raise UserError(f"{path} is damaged at line {rows.line_num}: delete it.") from None


class CsvLog:
    """Lines in a file, which is written anew with each: a kill leaves all of them or one less."""

    def __init__(self, path: Path, epochs: int) -> None:
        """Keep the first lines of an older file, as many as epochs are done."""
        self.path = path
        self.lines = [line for line in read(path) if line.epoch <= epochs]
        self._write()

    def add(self, line: Line) -> None:
        """One more epoch."""
        self.lines.append(line)
        self._write()

    def _write(self) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, [f.name for f in fields(Line)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(line) for line in self.lines)
        atomic_write(self.path, lambda stream: stream.write(text.getvalue().encode()))


@contextmanager
def tensorboard(folder: Path, epochs: int) -> Iterator[Any]:
    """A writer of TensorBoard's event files that hides what came after so many epochs.

    Raises:
        UserError: tensorboardX is not installed.
    """
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise UserError(
            "training needs the packages of the extra `train`: pip install 'pyscf-ipu[train]'."
        ) from None
    writer = SummaryWriter(str(folder), purge_step=epochs + 1 if epochs else None)
    try:
        yield writer
    finally:
        writer.close()


def add_to_tensorboard(writer: Any, line: Line, unit: str) -> None:
    """One epoch."""
    names = {
        "loss/train": line.train_loss,
        f"mae_{unit}/train": line.train_mae,
        f"mae_{unit}/valid": line.valid_mae,
        "optimizer/learning_rate": line.learning_rate,
        "optimizer/gradient_norm": line.gradient_norm,
        "speed/graphs_per_s": line.graphs_per_s,
    }
    for name, value in names.items():
        if not math.isnan(value):
            writer.add_scalar(name, value, line.epoch)
