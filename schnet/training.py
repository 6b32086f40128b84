"""The training loop: epochs of calls, a validation and a checkpoint after each, and how it ends.

A run goes on from its last checkpoint as if it had not been stopped: on a CPU, bit for bit.
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
from jax.experimental import multihost_utils

from qm1b.interrupts import Interrupt

from . import checkpoint, logs
from .batches import Call, Place
from .errors import UserError
from .folder import RunFolder
from .logs import CsvLog, Line
from .predictor import Predictor
from .preparing import Prepared
from .step import Report, State, make_step, place, replicate, start
from .streaming import prefetch

End = Literal["complete", "time is up", "interrupted"]


@dataclass
class Progress:
    """Where a training is; all of it is in a checkpoint."""

    place: Place = field(default_factory=Place)
    best_mae: float = math.inf
    best_epoch: int = 0
    seconds: float = 0.0
    loss: float = 0.0
    """Sums over the molecules of the epoch so far."""
    absolute_error: float = 0.0
    molecules: float = 0.0
    gradient_norm: float = 0.0
    epoch_seconds: float = 0.0

    def count(self, report: Report) -> None:
        """Add the updates of a call."""
        molecules = np.asarray(report.molecules, np.float64)
        self.loss += float(np.asarray(report.loss, np.float64) @ molecules)
        self.absolute_error += float(np.asarray(report.absolute_error, np.float64).sum())
        self.molecules += float(molecules.sum())
        self.gradient_norm = max(self.gradient_norm, float(np.max(report.gradient_norm)))

    def next_epoch(self) -> None:
        """Forget the epoch that is over."""
        self.place = Place(self.place.epoch + 1)
        self.loss = self.absolute_error = self.molecules = 0.0
        self.gradient_norm = self.epoch_seconds = 0.0

    def note(self) -> dict[str, Any]:
        """For a checkpoint."""
        return vars(self) | {"place": list(self.place)}

    @classmethod
    def of(cls, note: dict[str, Any]) -> Progress:
        """What `note` gave."""
        values: dict[str, Any] = note | {"place": Place(*note["place"])}
        return cls(**values)


class Training:
    """A training in a folder."""

    def __init__(
        self, prepared: Prepared, folder: RunFolder, show: Callable[[Progress], None]
    ) -> None:
        """Begin, or read the last checkpoint.

        Args:
            prepared: what is trained.
            folder: where it is kept.
            show: called after every call of the step.

        Raises:
            UserError: the checkpoint is damaged, or of another network.
        """
        self.prepared = prepared
        self.folder = folder
        self.show = show
        self.progress = Progress()
        state = start(prepared.first_model(), prepared.rule)
        if folder.last.exists():
            state, note = checkpoint.load(folder.last, state)
            self.progress = Progress.of(note)
        self._same_everywhere()
        self.state = replicate(state, prepared.devices)
        self.step = make_step(
            prepared.rule, prepared.settings.optimizer, prepared.dtype, prepared.devices
        )
        self.log = CsvLog(folder.log, self.progress.place.epoch) if leads() else None
        self._began = time.monotonic() - self.progress.seconds
        self._saved = time.monotonic()

    def _same_everywhere(self) -> None:
        """Refuse processes that would not compute the same updates: nothing would show it."""
        if jax.process_count() == 1:
            return
        about = self.prepared.description
        hashes = [side["fingerprint"] for side in about["data"].values()]
        settings = {k: v for k, v in about["settings"].items() if not k.startswith("rows.")}
        facts = [self.progress.note(), about["pack"], about["train_rows"], hashes, settings]
        mine = zlib.crc32(json.dumps(facts, sort_keys=True).encode())
        every: Any = multihost_utils.process_allgather(np.array([mine], np.uint32))
        if np.any(np.asarray(every) != mine):
            raise UserError(
                "the processes differ in their options, their data or the checkpoint they see: "
                "start all with the same options but --process, on the same data and --out."
            )

    @property
    def resumed(self) -> bool:
        """Whether there was a checkpoint."""
        return self.progress.place != Place()

    def run(self, interrupt: Interrupt) -> End:
        """Train until all epochs are done, the time is up, or somebody interrupts.

        Raises:
            UserError: loss or gradient are not finite; the last good weights are kept.
        """
        schedule = self.prepared.settings.schedule
        first = self.progress.seconds
        with ExitStack() as stack:
            writer = None
            if leads():
                epochs = self.progress.place.epoch
                writer = stack.enter_context(logs.tensorboard(self.folder.tensorboard, epochs))
            while self.progress.place.epoch < schedule.max_epochs:
                end = self._epoch(interrupt, first)
                if end is not None:
                    self.save()
                    return end
                line = self._finish_epoch()
                if writer is not None:
                    unit = self.prepared.target.display_unit
                    logs.add_to_tensorboard(writer, line, unit)
        return "complete"

    def _epoch(self, interrupt: Interrupt, first: float) -> End | None:
        """The rest of an epoch; None if it came to its end."""
        schedule = self.prepared.settings.schedule
        limit = 60.0 * schedule.max_minutes or math.inf
        calls = self.prepared.batches.calls(self.progress.place)
        ahead: Any = prefetch(calls)
        with closing(ahead):
            for call in ahead:
                self._call(call)
                spent = self.progress.seconds - first
                end = self._agreed(interrupt.count > 0, spent > limit)
                if end is not None:
                    return end
                if time.monotonic() - self._saved > 60.0 * schedule.checkpoint_minutes:
                    self.save()
        return None

    def _call(self, call: Call) -> None:
        begun = time.monotonic()
        packs = place(call.packs, self.prepared.devices)
        self.state, report = self.step(self.state, packs)
        values = Report(*[_local(x) for x in report])
        if not (np.isfinite(values.loss).all() and np.isfinite(values.gradient_norm).all()):
            self.save()
            raise UserError(
                f"loss or gradient became infinite or NaN in epoch {call.then.epoch + 1}; the "
                f"weights before that update are kept in {self.folder.last}. Train in another "
                "folder with a lower --learning-rate, a lower --clip or --precision float32."
            )
        progress = self.progress
        progress.count(values)
        progress.place = call.then
        progress.epoch_seconds += time.monotonic() - begun
        progress.seconds = time.monotonic() - self._began
        self.show(progress)

    def _agreed(self, interrupted: bool, late: bool) -> End | None:
        """What all processes do: they must leave the loop at the same call."""
        if jax.process_count() > 1:
            flags = multihost_utils.process_allgather(np.array([interrupted, late]))
            some: Any = np.reshape(flags, (-1, 2)).any(axis=0)
            interrupted, late = bool(some[0]), bool(some[1])
        if interrupted:
            return "interrupted"
        return "time is up" if late else None

    def _finish_epoch(self) -> Line:
        """Validate, log, keep the best weights, save."""
        progress, target = self.progress, self.prepared.target
        if not progress.molecules:
            raise UserError("an epoch had no training rows: give more data, or another --split.")
        epoch, updates = progress.place.epoch + 1, int(_local(self.state.updates))
        scale = self.prepared.references.scale * target.display_per_atomic
        schedule = self.prepared.settings.schedule
        due = epoch % schedule.valid_every == 0 or epoch == schedule.max_epochs
        valid_mae = self._validate() if leads() and due else None
        line = Line(
            epoch=epoch,
            updates=updates,
            learning_rate=float(np.asarray(self.prepared.rates(max(0, updates - 1)))),
            train_loss=progress.loss / progress.molecules,
            train_mae=scale * progress.absolute_error / progress.molecules,
            valid_mae=math.nan if valid_mae is None else valid_mae,
            gradient_norm=progress.gradient_norm,
            graphs_per_s=progress.molecules / max(progress.epoch_seconds, 1e-9),
            seconds=progress.seconds,
        )
        # Without validation rows the newest weights are the best ones; a NaN is never the best.
        judged = -float(epoch) if valid_mae is None else valid_mae
        progress.next_epoch()
        if leads() and due and judged < progress.best_mae:
            progress.best_mae, progress.best_epoch = judged, epoch
            checkpoint.save(self.folder.best, _on_host(self.state.mean), {"epoch": epoch})
        if self.log is not None:
            self.log.add(line)  # before the checkpoint, which takes it back if it is not reached
        self.save()
        self.show(progress)
        return line

    def _validate(self) -> float | None:
        """MAE of the averaged weights in the display unit; None if there are no validation rows,
        or none without elements that no training row had."""
        predictor = self.predictor()
        known = map(predictor.known, self.prepared.sides["valid"].parts())
        rows = [part for part in known if len(part)]
        return predictor.errors(rows).mae if rows else None

    def predictor(self) -> Predictor:
        """With the averaged weights as they are."""
        return Predictor(
            jax.tree.map(lambda x: _local(x) if eqx.is_array(x) else x, self.state.mean),
            self.prepared.settings.model,
            self.prepared.references,
            self.prepared.target,
            self.prepared.settings.schedule.pack_molecules,
        )

    def save(self) -> None:
        """Write the last checkpoint."""
        self._saved = time.monotonic()
        if leads():
            checkpoint.save(self.folder.last, _on_host(self.state), self.progress.note())


def leads() -> bool:
    """Whether this process writes the files."""
    return jax.process_index() == 0


def _local(x: Any) -> Any:
    """The part of a replicated array that lies on a device of this process: all of it."""
    return x.addressable_data(0)


def _on_host(state: State | Any) -> Any:
    return jax.tree.map(lambda x: np.asarray(_local(x)) if eqx.is_array(x) else x, state)
