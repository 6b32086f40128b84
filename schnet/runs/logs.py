"""The logs of a training: a CSV file and TensorBoard's files, one line per epoch.

A training that resumes after a kill cuts the CSV back to its checkpoint, so that the file is the
same as without the kill. No service is called.
"""

import csv
import io
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.base.terminal import say
from qm1b.storage.files import write_text
from schnet.errors import UserError


class EpochLine(NamedTuple):
    """One epoch."""

    epoch: int
    """From 1."""
    updates: int
    """Since the beginning."""
    learning_rate: float
    train_loss: float
    """Mean over the epoch, with the weights of each update."""
    train_mae: float
    """Likewise, in the target's display unit."""
    valid_mae: float
    """In the target's display unit, with the averaged weights; NaN without validation rows."""
    gradient_norm: float
    """Largest of the epoch, before clipping."""
    graphs_per_s: float
    """Rows per second."""
    seconds: float
    """Since the beginning, pauses not counted."""
    train_forces_mae: float = math.nan
    """As `train_mae`, of the components of the forces, in meV/Angstrom; NaN without forces."""
    valid_forces_mae: float = math.nan
    """As `valid_mae`, likewise."""

    @property
    def has_forces(self) -> bool:
        """Whether forces are learned."""
        return not math.isnan(self.train_forces_mae)


def read(path: Path) -> list[EpochLine]:
    """The lines of a log; none without a file. Raises UserError if it is damaged."""
    if not path.exists():
        return []
    kinds = [int if name in ("epoch", "updates") else float for name in EpochLine._fields]
    without_forces = dict.fromkeys(EpochLine._field_defaults, "nan")
    with open(path, newline="") as stream:
        rows = csv.DictReader(stream)
        try:
            return [
                EpochLine._make(
                    kind((without_forces | row)[name])
                    for name, kind in zip(EpochLine._fields, kinds, strict=True)
                )
                for row in rows
            ]
        except (KeyError, TypeError, ValueError):
            raise UserError(
                f"{path} is damaged at line {rows.line_num}: delete the file, then run the same "
                "command again"
            ) from None


class CsvLog:
    """A file of lines, replaced by a longer one each epoch: a kill loses at most the last line."""

    def __init__(self, path: Path, epochs: int) -> None:
        """Keep the lines of this many epochs of an older file."""
        self.path = path
        self.lines = [line for line in read(path) if line.epoch <= epochs]
        self._write()

    def add(self, line: EpochLine) -> None:
        """Add an epoch."""
        self.lines.append(line)
        self._write()

    def _write(self) -> None:
        text = io.StringIO()
        forces = any(line.has_forces for line in self.lines)
        width = len(EpochLine._fields) - (0 if forces else len(EpochLine._field_defaults))
        rows = (line[:width] for line in [EpochLine._fields, *self.lines])
        csv.writer(text, lineterminator="\n").writerows(rows)
        write_text(self.path, text.getvalue())


@contextmanager
def tensorboard(folder: Path, epochs: int, unit: str) -> Iterator[Callable[[EpochLine], None]]:
    """A function that adds an epoch to TensorBoard's event files; earlier events after this many
    epochs are hidden. Where they cannot be written, this is said once, and the training goes on
    without them. Raises MissingPackage if tensorboardX is not installed."""
    try:
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore
        from tensorboardX.summary import scalar
    except ImportError:
        raise MissingPackage(
            f"training needs the packages of the extra `train`: run {how_to_install('train')}"
        ) from None
    writers: list[EventsWriter] = []  # in this thread, and none after a failure

    @contextmanager
    def dispensable() -> Iterator[None]:
        try:
            yield
        except OSError as error:
            writers.clear()
            what = f"TensorBoard's files in {folder} cannot be written ({error.strerror})"
            say(f"schnet train: the training goes on without them: {what}", to_stderr=True)

    with dispensable():
        folder.mkdir(exist_ok=True)
        writers.append(EventsWriter(str(folder / "events")))
        if epochs:
            again = SessionLog(status=SessionLog.START)
            writers[0].write_event(Event(wall_time=time.time(), step=epochs + 1, session_log=again))

    def add(line: EpochLine) -> None:
        values = {
            "loss/train": line.train_loss,
            f"mae_{unit}/train": line.train_mae,
            f"mae_{unit}/valid": line.valid_mae,
            "forces_mae_meV_per_Angstrom/train": line.train_forces_mae,
            "forces_mae_meV_per_Angstrom/valid": line.valid_forces_mae,
            "optimizer/learning_rate": line.learning_rate,
            "optimizer/gradient_norm": line.gradient_norm,
            "speed/graphs_per_s": line.graphs_per_s,
        }
        known = [scalar(name, value) for name, value in values.items() if not math.isnan(value)]
        with dispensable():
            for writer in writers:
                for one in known:
                    writer.write_event(Event(wall_time=time.time(), step=line.epoch, summary=one))
                writer.flush()

    try:
        yield add
    finally:
        with dispensable():
            for writer in writers:
                writer.close()
