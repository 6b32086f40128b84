"""What the commands do: a training from settings to pictures, an evaluation, an import."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.terminal import counted
from qm1b.process.interrupts import Interrupt
from qm1b.storage.files import write_text
from schnet.commands.display import TrainingReport, display
from schnet.errors import UserError
from schnet.network.pyg import ImportedNetwork
from schnet.runs import checkpoint, plots, results
from schnet.runs.run_folder import RunFolder, description
from schnet.runs.settings import TrainSettings, read_yaml
from schnet.samples.accuracy import Predicted
from schnet.samples.references import HIGHEST, AtomReferences
from schnet.samples.targets import target_of
from schnet.sources import Source, open_source
from schnet.training.loop import End, Training, leads
from schnet.training.prepare import Prepared, prepare
from schnet.training.subset import Subset, subsets


def train(
    settings: TrainSettings, out: Path, interrupt: Interrupt, quiet: bool = False, system: str = ""
) -> End:
    """Train, draw the learning curve, evaluate on the test rows, and print the result.

    A training in the folder `out` is resumed; the first interrupt ends it after the current update.
    An update is priced on a system of IPUs, if `system` is the name of one.

    Raises:
        UserError: settings or data are wrong, the folder belongs to another training or is in use,
            or the loss became infinite.
    """
    prepared, folder = prepare(settings), RunFolder(out)
    with folder.held() if leads() else nullcontext():
        return _train(prepared, folder, interrupt, quiet=quiet, system=system)


def _train(
    prepared: Prepared, folder: RunFolder, interrupt: Interrupt, quiet: bool, system: str
) -> End:
    """Train on prepared data, in a folder of its own."""
    if leads():
        folder.start(prepared.settings, prepared.description)
    elif folder.json.exists():  # all processes raise this error, so none waits for another
        folder.refuse_other(prepared.settings, prepared.description)
    with display(quiet or not leads()) as shown:
        report = TrainingReport(prepared, shown)
        training = Training(prepared, folder, report.show)
        report.begin(training)
        if system and leads():
            line = _price(prepared, folder, system)
            shown.say(line)
            if quiet and not folder.price.exists():
                print(line, file=sys.stderr)
        end = training.run(interrupt)
    progress = training.progress
    if training.log is not None and training.log.lines:
        lines = training.log.lines
        plots.learning_curve(
            folder.learning_curve, lines, prepared.target, best_epoch=progress.best_epoch
        )
    if end != "complete" and leads():
        print(
            f"{folder.path}: {end} in epoch {progress.place.epoch + 1} of "
            f"{prepared.settings.schedule.max_epochs}; run the same command again to resume",
            file=sys.stderr,
        )
    if folder.best.exists() and training.log is not None and end != "interrupted":
        if any(len(part) for part in prepared.sides["test"].parts()):
            _judge(folder, prepared.sides["test"], "test", keep=True)
        else:
            print(
                "no test rows: by its share of so few molecules, --split puts none there; give "
                "numbers, such as --split 20,3,3, or evaluate other data with `schnet evaluate`"
            )
    return end


def _price(prepared: Prepared, folder: RunFolder, system: str) -> str:
    """Write the price of an update; returns it as a line, or why there is none."""
    from pyscf_ipu.ipu import DtypeOnIpuError, priced_target
    from schnet.training.costs.training_price import price_prepared

    try:
        price = price_prepared(prepared, priced_target(system))
    except (UsageError, DtypeOnIpuError) as error:
        folder.price.unlink(missing_ok=True)  # of other settings
        return f"no price on {system}: {error}"
    write_text(folder.price, json.dumps(price.to_dict(), indent=1) + "\n")
    return price.sentence()


def evaluate(
    run: Path, data: Path | None, side: str | None, key: str | None, unit: str | None
) -> results.Judged:
    """Print the errors of a run's best weights on rows of its own data, or on other data.

    Raises:
        UserError: there is no run or no data, its data has changed since the training, or the
            options contradict each other.
    """
    folder = RunFolder(run)
    if data is None:
        if key is not None or unit is not None:
            raise UserError("--key and --unit describe --data: give --data too, or leave them out")
        side = side or "test"
        return _judge(folder, _own(folder, side), side, keep=False)
    if side is not None:
        raise UserError("--side selects rows of the run's own data: leave out --side or --data")
    source = open_source(data, folder.target().name, key, unit=unit)
    judged = _judge(folder, source, data.name, keep=False)
    for reason, n in source.dropped.items():
        print(f"left out {counted(n, 'row')}: {reason}", file=sys.stderr)
    return judged


def _own(folder: RunFolder, side: str) -> Subset:
    """One side of the data that a run was trained on."""
    record = folder.describe()
    if "settings" not in record or "data" not in record:
        raise UserError(f"{folder.path} has no data of its own: give --data FILE")
    subset = subsets(read_yaml(folder.config, TrainSettings).rows)[side]
    if record["data"][side]["fingerprint"] != subset.source.fingerprint():
        raise UserError(
            f"{subset.source.path} has changed since {folder.path} was trained on it. Give the "
            "rows to evaluate with --data FILE."
        )
    return subset


def _judge(folder: RunFolder, rows: Subset | Source, name: str, keep: bool) -> results.Judged:
    """Print errors; with `keep` also write the predictions and their picture to the folder."""
    predictor = folder.predictor()
    judged = results.judge(predictor, rows.parts())
    target, errors = predictor.target, judged.errors
    if keep:
        results.write_rows(
            folder.predictions, results.lines(predictor, [judged.samples], truth=True)
        )
        known = Predicted.in_file(judged.samples)
        plots.parity(folder.parity, known, judged.predicted, target=target, errors=errors)
        results.write_errors(folder.results, target, errors)
    if errors.left_out:
        without = counted(errors.left_out, "row")
        print(f"left out {without} with an element that the training rows lack or do not determine")
    print(results.rmse_sentence(target, errors))
    print(results.sentence(name, target, errors))
    return judged


def import_pyg(imported: ImportedNetwork, out: Path, target: str, unit: str, origin: str) -> None:
    """Write the folder `out` of a run that predicts as a network of PyTorch-Geometric does.

    The target is the property that it predicts, in this unit; `origin` names the file of it.

    Raises:
        UserError: the target or its unit is unknown, or `out` holds a run.
    """
    wanted = target_of(target)
    factor = wanted.per_atomic(unit)
    folder = RunFolder(out)
    if folder.json.exists():
        raise UserError(f"{out} holds a run already; give another --out")
    values = np.zeros(HIGHEST + 1)
    if imported.atom_references is not None:
        values[: len(imported.atom_references)] = imported.atom_references / factor
    elements = tuple(range(1, 100))
    references = AtomReferences(elements, tuple(values[1:100].tolist()), 0.0, scale=1.0 / factor)
    folder.make()
    checkpoint.save(folder.best, imported.model, {"from": origin})
    record = {"from": f"PyTorch-Geometric, {origin}, in {unit}"}
    folder.write(description(wanted, imported.config, references, origin=record))
