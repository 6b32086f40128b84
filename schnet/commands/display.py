"""What a training shows while it runs: a bar in a terminal, a line per epoch elsewhere."""

import math
import time
from dataclasses import dataclass

from rich.console import Console

from pyscf_ipu.base.terminal import counted
from qm1b.process.display import Bar, Display, Plain, time_left
from schnet.network.model import count_parameters
from schnet.runs.logs import EpochLine
from schnet.samples.targets import FORCE_DISPLAY_UNIT
from schnet.training.batches import TrainingProgress
from schnet.training.loop import Training
from schnet.training.prepare import Prepared


def display(quiet: bool) -> Display:
    """Where a training reports: on stderr, so that stdout holds only the result."""
    console = Console(stderr=True)
    if quiet:
        return Display()
    return Bar(console) if console.is_terminal else Plain(math.inf, stderr=True)


@dataclass(frozen=True)
class _Shown:
    """How far a training is."""

    rows: int
    expected: int
    pace: str
    notes = ()


class TrainingReport:
    """Tells a display what is trained, and how far it is.

    Args:
        prepared: what is trained.
        display: where it is shown.
    """

    def __init__(self, prepared: Prepared, display: Display) -> None:
        self.prepared = prepared
        self._display = display
        self._training: Training | None = None
        self._epoch = self._rows_before = 0
        self._began = time.monotonic()

    def begin(self, training: Training) -> None:
        """Tell what is trained, on what."""
        self._training = training
        progress, prepared = training.progress, self.prepared
        self._epoch = progress.place.epoch
        self._rows_before = self._rows(progress)
        shape, say = prepared.batches.shape, self._display.say
        say(
            f"{prepared.target.name} of {counted(prepared.rows, 'training row')}; SchNet with "
            f"{count_parameters(training.state.model):,} parameters, "
            f"{counted(prepared.devices.size, 'device')}"
        )
        say(
            f"packs of {shape.atoms} atoms and {shape.pairs} pairs, about "
            f"{counted(prepared.updates, 'update')} per epoch"
        )
        for file, reasons in prepared.dropped.items():
            for why, n in reasons.items():
                say(f"{file}: left out {counted(n, 'row')}: {why}")
        if any(prepared.references.values):
            say(f"references in {prepared.target.unit}: {prepared.references.as_text()}")
        for doubt in prepared.doubts:
            say(f"note: {doubt}")
        epochs = prepared.settings.schedule.max_epochs
        path = training.folder.path
        if training.enough or self._epoch >= epochs:
            say(f"{path} is complete; to train on from its weights: --init {path} and a new --out")
        elif training.resumed:
            say(f"resuming {path}: epoch {self._epoch + 1} of {epochs}")

    def show(self, progress: TrainingProgress) -> None:
        """Update after a call of the step or at the end of an epoch."""
        prepared, training = self.prepared, self._training
        unit = prepared.target.display_unit
        if progress.place.epoch > self._epoch:
            self._epoch = progress.place.epoch
            if training and training.log:  # only the process that writes has one
                line, n = training.log.lines[-1], training.left_out
                left_out = f"  {counted(n, 'validation row')} left out" if n else ""
                self._display.say(
                    f"epoch {line.epoch:4d}  train {line.train_mae:8.1f} {unit}  "
                    f"{_of_validation(line, unit)}{_of_forces(line)}"
                    f"{line.graphs_per_s:6.0f} rows/s{left_out}"
                )
        if progress.molecules:
            self._display.update(self._shown(progress))

    def _rows(self, progress: TrainingProgress) -> int:
        return progress.place.epoch * self.prepared.rows + round(progress.molecules)

    def _shown(self, progress: TrainingProgress) -> _Shown:
        prepared, epochs = self.prepared, self.prepared.settings.schedule.max_epochs
        rows, expected = self._rows(progress), prepared.rows * epochs
        new, seconds = rows - self._rows_before, time.monotonic() - self._began
        left = time_left((expected - rows) * seconds / new if new else None)
        mae, of_forces = progress.maes(prepared.target, prepared.references.scale)
        also = "" if math.isnan(of_forces) else f", forces {of_forces:.1f} {FORCE_DISPLAY_UNIT}"
        pace = (
            f"epoch {progress.place.epoch + 1}/{epochs}, {rows}/{expected} rows, "
            f"MAE {mae:.1f} {prepared.target.display_unit}{also}, ETA {left}"
        )
        return _Shown(rows, expected, pace)


def _of_validation(line: EpochLine, unit: str) -> str:
    """The error of the validation rows, if there are any and it is their turn."""
    return "" if math.isnan(line.valid_mae) else f"valid {line.valid_mae:8.1f} {unit}  "


def _of_forces(line: EpochLine) -> str:
    """The errors of the forces, if they are learned."""
    if not line.has_forces:
        return ""
    without = math.isnan(line.valid_forces_mae)
    valid = "" if without else f", valid {line.valid_forces_mae:7.1f}"
    return f"forces: train {line.train_forces_mae:7.1f}{valid} {FORCE_DISPLAY_UNIT}  "
