"""What a training shows while it runs: a bar in a terminal, a line per epoch elsewhere."""

import sys

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from schnet.network.model import count_parameters
from schnet.training.loop import Progress, Training
from schnet.training.prepare import Prepared


class TrainingDisplay:
    """Progress on stderr, so that stdout holds only the result."""

    def __init__(self, prepared: Prepared, quiet: bool) -> None:
        self.prepared = prepared
        self._epoch = 0
        self._training: Training | None = None
        self.bar = Bar(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f} rows"),
            TextColumn("{task.fields[mae]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True, quiet=quiet, highlight=False, markup=False, emoji=False),
            disable=quiet or not sys.stderr.isatty(),
        )
        self._epochs = prepared.settings.schedule.max_epochs
        self._task = self.bar.add_task("", total=prepared.rows * self._epochs, epoch="", mae="")

    def begin(self, training: Training) -> None:
        """Print what is trained, on what."""
        self._training = training
        self._epoch = training.progress.place.epoch
        prepared, shape = self.prepared, self.prepared.batches.shape
        self._print(
            f"{prepared.target.name} of {prepared.rows} training rows; SchNet with "
            f"{count_parameters(training.state.model):,} parameters, "
            f"{prepared.devices.size} device(s)"
        )
        self._print(
            f"packs of {shape.atoms} atoms and {shape.pairs} pairs, about {prepared.updates} "
            "updates per epoch"
        )
        for file, reasons in prepared.dropped.items():
            for why, n in reasons.items():
                self._print(f"{file}: left out {n} rows: {why}")
        if training.resumed and self._epoch < self._epochs:
            where = f"epoch {self._epoch + 1} of {self._epochs}"
            self._print(f"resuming {training.folder.path}: {where}")

    def show(self, progress: Progress) -> None:
        """Update after a call of the step or at the end of an epoch."""
        prepared, log = self.prepared, self._training and self._training.log
        unit = prepared.target.display_unit
        if progress.place.epoch > self._epoch:
            self._epoch = progress.place.epoch
            if log is not None:  # only the process that writes has one
                line = log.lines[-1]
                self._print(
                    f"epoch {line.epoch:4d}  train {line.train_mae:8.1f} {unit}  valid "
                    f"{line.valid_mae:8.1f} {unit}  {line.graphs_per_s:6.0f} rows/s"
                )
        if progress.molecules:
            scale = prepared.references.scale * prepared.target.display_per_atomic
            mae = scale * progress.absolute_error / progress.molecules
            self.bar.update(
                self._task,
                completed=self._epoch * prepared.rows + progress.molecules,
                epoch=f"{self._epoch + 1}/{self._epochs}",
                mae=f"MAE {mae:.1f} {unit}",
            )

    def _print(self, text: str) -> None:
        self.bar.console.print(text, soft_wrap=True)
