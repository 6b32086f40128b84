"""What a training shows: a bar in a terminal, a line an epoch elsewhere."""

from __future__ import annotations

import sys
from typing import Any

from .folder import RunFolder
from .logs import CsvLog
from .model import count_parameters
from .preparing import Prepared
from .training import Progress, Training


class Screen:
    """Progress on stderr, so that stdout holds the result alone."""

    def __init__(self, prepared: Prepared, folder: RunFolder, quiet: bool) -> None:
        self.prepared = prepared
        self.folder = folder
        self.quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._epoch = 0
        self._log: CsvLog | None = None

    def __enter__(self) -> Screen:
        """Open the bar, if there is a terminal."""
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("epoch {task.fields[epoch]}"),
                BarColumn(),
                TextColumn("{task.completed:.0f}/{task.total:.0f} molecules"),
                TextColumn("{task.fields[mae]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        if self._bar is not None:
            self._bar.stop()

    def begin(self, training: Training) -> None:
        """Say what is trained, on what."""
        progress, self._log = training.progress, training.log
        prepared, settings = self.prepared, self.prepared.settings
        about = prepared.description
        self._epoch = progress.place.epoch
        parameters = count_parameters(training.state.model)
        lines = [
            f"{prepared.target.name} of {about['train_rows']} training rows; SchNet with "
            f"{parameters:,} parameters, {prepared.devices.size} device(s)",
            f"packs of {about['pack']['atoms']} atoms and {about['pack']['pairs']} pairs, "
            f"about {about['updates_per_epoch']} updates an epoch",
        ]
        for file, reasons in about["dropped"].items():
            lines += [f"{file}: left out {n} rows: {why}" for why, n in reasons.items()]
        if training.resumed:
            lines.append(
                f"going on with {self.folder.path}: epoch {self._epoch + 1} of "
                f"{settings.schedule.max_epochs}"
            )
        for line in lines:
            self._say(line)
        if self._bar is not None:
            total = about["train_rows"] * settings.schedule.max_epochs
            self._task = self._bar.add_task(
                "", total=total, completed=self._seen(progress), epoch="", mae=""
            )

    def _seen(self, progress: Progress) -> float:
        """Molecules since the beginning; updates an epoch are only known about."""
        before = progress.place.epoch * self.prepared.description["train_rows"]
        return before + progress.molecules

    def show(self, progress: Progress) -> None:
        """After every call of the step and every epoch."""
        if self.quiet:
            return
        prepared = self.prepared
        if progress.place.epoch > self._epoch:
            self._epoch = progress.place.epoch
            self._epoch_line()
        if self._bar is None or not progress.molecules:
            return
        unit = prepared.target.display_unit
        scale = prepared.references.scale * prepared.target.display_per_atomic
        mae = scale * progress.absolute_error / progress.molecules
        self._bar.update(
            self._task,
            completed=self._seen(progress),
            epoch=f"{self._epoch + 1}/{prepared.settings.schedule.max_epochs}",
            mae=f"MAE {mae:.1f} {unit}",
        )

    def _epoch_line(self) -> None:
        if self._log is None:  # not the process that writes
            return
        line, unit = self._log.lines[-1], self.prepared.target.display_unit
        self._say(
            f"epoch {line.epoch:4d}  train {line.train_mae:8.1f} {unit}  valid "
            f"{line.valid_mae:8.1f} {unit}  {line.graphs_per_s:6.0f} molecules/s"
        )

    def _say(self, text: str) -> None:
        if self.quiet:
            return
        if self._bar is not None:
            self._bar.console.print(text, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)
