"""What the commands do: a training from settings to pictures, and an evaluation."""

from __future__ import annotations

import sys
from pathlib import Path

from qm1b.interrupts import Interrupt

from . import plots, results
from .errors import UserError
from .folder import RunFolder
from .preparing import Prepared, prepare, sides_of
from .progress import Screen
from .settings import TrainSettings, read_yaml
from .sources import Source, open_source
from .subset import Subset
from .training import End, Training, leads


def train(settings: TrainSettings, out: Path, interrupt: Interrupt, quiet: bool = False) -> End:
    """Train, draw the learning curve, and evaluate on the test rows; prints the result.

    Args:
        settings: of the training.
        out: its folder; a training that is there is gone on with.
        interrupt: counts Ctrl-C; the first one ends the training at the next update.
        quiet: print only the result.

    Raises:
        UserError: settings or data are not what they should be, the folder is another training's,
            or the loss became infinite.
    """
    folder = RunFolder(out)
    prepared = prepare(settings)
    if leads():
        folder.start(settings, prepared.description)
    elif folder.json.exists():  # as the first process says it too: none waits for another
        folder.refuse_other(prepared.description)
    with Screen(prepared, folder, quiet or not leads()) as screen:
        training = Training(prepared, folder, screen.show)
        screen.begin(training)
        end = training.run(interrupt)
    progress = training.progress
    if training.log is not None and training.log.lines:
        lines = training.log.lines
        plots.learning_curve(folder.learning_curve, lines, prepared.target, progress.best_epoch)
    if end != "complete" and leads():
        print(
            f"{end} in epoch {progress.place.epoch + 1} of {settings.schedule.max_epochs}; "
            f"the same command goes on from there. {out}",
            file=sys.stderr,
        )
    if folder.best.exists() and training.log is not None and end != "interrupted":
        _report(folder, prepared)
    return end


def _report(folder: RunFolder, prepared: Prepared) -> None:
    subset = prepared.sides["test"]
    if not any(len(part) for part in subset.parts()):
        print("no test rows: evaluate with `schnet evaluate RUN --data FILE`")
        return
    _judge(folder, subset, "test", keep=True)


def evaluate(
    run: Path, data: Path | None, side: str | None, key: str | None, unit: str | None
) -> results.Judged:
    """Print the errors of a run's best weights on rows of its own data, or on other data.

    Raises:
        UserError: no run, no data, its data have changed since the training, or options that
            contradict each other.
    """
    folder = RunFolder(run)
    if data is None:
        if key is not None or unit is not None:
            raise UserError("--key and --unit are for --data: give it too, or leave them out.")
        side = side or "test"
        return _judge(folder, _own(folder, side), side, keep=False)
    if side is not None:
        raise UserError("--side is of the run's own data, and --data are others: give one of them.")
    source = open_source(data, folder.target().name, key, unit)
    judged = _judge(folder, source, "test", keep=False)
    for reason, n in source.dropped.items():
        print(f"left out {n} rows: {reason}", file=sys.stderr)
    return judged


def _own(folder: RunFolder, side: str) -> Subset:
    """Rows of the data that a run was trained on."""
    found = folder.describe()
    if "settings" not in found:
        raise UserError(f"{folder.path} has no data of its own: give --data FILE.")
    rows = read_yaml(folder.config, TrainSettings()).rows
    sides = sides_of(rows)
    there, here = found["data"][side]["fingerprint"], sides[side].source.fingerprint()
    if there != here:
        raise UserError(
            f"{sides[side].source.path} is not what {folder.path} was trained on: it has changed. "
            "Give the rows to evaluate with --data FILE."
        )
    return sides[side]


def _judge(folder: RunFolder, rows: Subset | Source, name: str, keep: bool) -> results.Judged:
    predictor = folder.predictor()
    judged = results.judge(predictor, rows.parts())
    target = predictor.target
    if keep:
        results.write_predictions(folder.predictions, predictor, [judged.samples], truth=True)
        plots.parity(folder.parity, judged.samples.targets, judged.predicted, target, judged.errors)
    e = judged.errors
    if e.left_out:
        print(f"left out {e.left_out} rows with an element that no training row had")
    print(f"RMSE {e.rmse:.2f} {target.display_unit}")
    print(results.sentence(name, target, e))
    return judged
