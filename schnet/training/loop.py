"""The training loop: epochs of calls of the step, each followed by a validation and a checkpoint.

A training resumes from its last checkpoint as if it had never stopped: on a CPU, bit for bit.
"""

import json
import math
import time
import zlib
from collections.abc import Callable
from contextlib import closing, nullcontext
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import PyTree

from qm1b.process.interrupts import Interrupt
from schnet.errors import UserError
from schnet.network.predictor import Predictor
from schnet.runs import checkpoint, logs
from schnet.runs.logs import CsvLog, EpochLine
from schnet.runs.run_folder import RunFolder
from schnet.samples.accuracy import Errors
from schnet.samples.prefetch import prefetch
from schnet.training.batches import Call, CallPlace, TrainingProgress
from schnet.training.optimizer import learning_rate, optimizer
from schnet.training.prepare import Prepared
from schnet.training.step import make_step, place, replicate, start

End = Literal["complete", "time is up", "interrupted"]


class Training:
    """A training in a folder."""

    def __init__(
        self, prepared: Prepared, folder: RunFolder, show: Callable[[TrainingProgress], None]
    ) -> None:
        """Begin, or read the last checkpoint; raises as `checkpoint.load`. `show` is called after
        every call of the step and at the end of an epoch."""
        self.prepared, self.folder, self.show = prepared, folder, show
        self.progress = TrainingProgress()
        config, schedule = prepared.settings.optimizer, prepared.settings.schedule
        updates = prepared.planned_updates
        rule, self.rates = optimizer(config, updates), learning_rate(config, updates)
        state = start(prepared.first_model(), rule, schedule.precision == "float16")
        if folder.last.exists():
            state, note = checkpoint.load(folder.last, state)
            begin = CallPlace(*note.pop("place"))
            self.progress = TrainingProgress(begin, **note)
        self._same_everywhere()
        self.state = replicate(state, prepared.devices)
        dtype = jnp.dtype(schedule.precision)
        forces = prepared.target.has_forces
        rounding = schedule.stochastic_rounding
        self.step = make_step(
            rule, config, dtype, devices=prepared.devices, forces=forces, rounding=rounding
        )
        self.log = CsvLog(folder.log, self.progress.place.epoch) if leads() else None
        self.left_out = 0
        """Rows of the last validation that cannot be predicted."""
        self._began = time.monotonic() - self.progress.seconds
        self._saved = time.monotonic()

    def _same_everywhere(self) -> None:
        """Refuse processes that would compute different updates, which nothing else would show."""
        if jax.process_count() == 1:
            return
        prepared = self.prepared
        hashes = [side.source.fingerprint() for side in prepared.sides.values()]
        settings = prepared.settings.decisive().items()
        others = {name: value for name, value in settings if not name.startswith("rows.")}
        numbers = [prepared.batches.shape, prepared.rows]
        facts = json.dumps([vars(self.progress), numbers, hashes, others], sort_keys=True)
        mine = zlib.crc32(facts.encode())
        if np.any(_gathered(np.array([mine], np.uint32)) != mine):
            raise UserError(
                "the processes differ in their options, their data or the checkpoint they see: "
                "start all with the same options except --process, on the same data and --out"
            )

    @property
    def resumed(self) -> bool:
        """Whether there was a checkpoint."""
        return self.progress.place != CallPlace()

    @property
    def enough(self) -> bool:
        """Whether as many examples were seen as wanted."""
        most = self.prepared.settings.schedule.max_examples
        return most > 0 and self.progress.examples >= most

    def run(self, interrupt: Interrupt) -> End:
        """Train until all epochs are done, the time is up, or the user interrupts.

        Raises:
            UserError: loss or gradient are not finite; the last good weights are kept.
        """
        first, done = self.progress.seconds, self.progress.place.epoch
        unit = self.prepared.target.display_unit
        events = logs.tensorboard(self.folder.tensorboard, done, unit) if leads() else nullcontext()
        with events as add:
            for _ in range(done, self.prepared.settings.schedule.max_epochs):
                if self.enough:
                    break
                end = self._epoch(interrupt, first)
                if end is not None:
                    self.save()
                    return end
                line = self._finish_epoch()
                if add is not None:
                    add(line)
        return "complete"

    def _epoch(self, interrupt: Interrupt, first: float) -> End | None:
        """The rest of an epoch; None if it is complete, or no more examples are wanted."""
        schedule = self.prepared.settings.schedule
        limit = 60.0 * schedule.max_minutes or math.inf
        with closing(prefetch(self.prepared.batches.calls(self.progress.place))) as ahead:
            for call in ahead:
                self._call(call)
                if self.enough:
                    return None
                end = _agreed(interrupt.count > 0, self.progress.seconds - first > limit)
                if end is not None:
                    return end
                if time.monotonic() - self._saved > 60.0 * schedule.checkpoint_minutes:
                    self.save()
        return None

    def _call(self, call: Call) -> None:
        begun = time.monotonic()
        packs = place(call.packs, self.prepared.devices)
        self.state, report = self.step(self.state, packs)
        report = _local(report)
        if not (np.isfinite(report.loss).all() and np.isfinite(report.gradient_norm).all()):
            self.save()
            raise UserError(
                f"loss or gradient became infinite or NaN in epoch {call.then.epoch + 1}; the "
                f"weights before that update are kept in {self.folder.last}. Train in another "
                "folder with a lower --learning-rate, a lower --clip or --precision float32."
            )
        progress = self.progress
        progress.count(report)
        progress.place = call.then
        progress.epoch_seconds += time.monotonic() - begun
        progress.seconds = time.monotonic() - self._began
        self.show(progress)

    def _finish_epoch(self) -> EpochLine:
        """Validate, log, keep the best weights, save."""
        prepared, progress = self.prepared, self.progress
        if not progress.molecules:
            raise UserError("an epoch had no training rows: give more data, or another --split")
        epoch, updates = progress.place.epoch + 1, int(_local(self.state.updates))
        schedule = prepared.settings.schedule
        due = epoch % schedule.valid_every == 0 or epoch == schedule.max_epochs or self.enough
        valid = self._validate() if leads() and due else None
        train_mae, train_forces_mae = progress.maes(prepared.target, prepared.references.scale)
        line = EpochLine(
            epoch=epoch,
            updates=updates,
            learning_rate=float(np.asarray(self.rates(max(0, updates - 1)))),
            train_loss=progress.loss / progress.molecules,
            train_mae=train_mae,
            valid_mae=math.nan if valid is None else valid.mae,
            gradient_norm=progress.gradient_norm,
            graphs_per_s=progress.molecules / max(progress.epoch_seconds, 1e-9),
            seconds=progress.seconds,
            train_forces_mae=train_forces_mae,
            valid_forces_mae=valid.forces.mae if valid and valid.forces else math.nan,
        )
        # Without validation rows the newest weights are the best ones; a NaN is never the best.
        weight = prepared.settings.optimizer.forces_weight
        judged = -float(epoch) if valid is None else valid.judged(weight)
        progress.next_epoch()
        if leads() and due and judged < progress.best_mae:
            progress.best_mae, progress.best_epoch = judged, epoch
            checkpoint.save(self.folder.best, _local(self.state.mean), {"epoch": epoch})
        if self.log is not None:
            self.log.add(line)  # before the checkpoint, which takes it back if it is not reached
        self.save()
        self.show(progress)
        return line

    def _validate(self) -> Errors | None:
        """Errors of the averaged weights; None without validation rows that can be predicted."""
        predictor = self.predictor()
        rows = [part for part in self.prepared.sides["valid"].parts() if len(part)]
        known = sum(len(predictor.known(part)) for part in rows)
        self.left_out = sum(map(len, rows)) - known
        return predictor.errors(rows) if known else None

    def predictor(self) -> Predictor:
        """A predictor with the current averaged weights."""
        return Predictor(
            model=_local(self.state.mean),
            config=self.prepared.settings.model,
            references=self.prepared.references,
            target=self.prepared.target,
            pack_molecules=self.prepared.settings.schedule.pack_molecules,
        )

    def save(self) -> None:
        """Write the last checkpoint."""
        self._saved = time.monotonic()
        if leads():
            checkpoint.save(self.folder.last, _local(self.state), vars(self.progress))


def leads() -> bool:
    """Whether this process writes the files."""
    return jax.process_index() == 0


def _agreed(interrupted: bool, late: bool) -> End | None:
    """How all processes end the loop: they must do so after the same call."""
    if jax.process_count() > 1:
        flags = _gathered(np.array([interrupted, late])).reshape(-1, 2)
        interrupted, late = bool(flags[:, 0].any()), bool(flags[:, 1].any())
    if interrupted:
        return "interrupted"
    return "time is up" if late else None


def _gathered(values: np.ndarray) -> np.ndarray:
    """The arrays of all processes."""
    return np.asarray(multihost_utils.process_allgather(values))


def _local(tree: PyTree) -> PyTree:
    """Replicated arrays on one device of this process."""
    return jax.tree.map(lambda x: x.addressable_data(0), tree)
