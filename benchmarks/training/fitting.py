"""Trainings of the gap, as the parts of the benchmark need them."""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from qm1b.process.interrupts import Interrupt
from schnet.network.config import ModelConfig, Optimizer, Schedule
from schnet.runs import results
from schnet.runs.run_folder import RunFolder
from schnet.runs.settings import Data, TrainSettings
from schnet.samples.samples import Samples
from schnet.sources import open_source
from schnet.training.loop import Training
from schnet.training.prepare import Prepared, prepare

BATCH = 32


def settings_for(
    data: Path, split: str, model: ModelConfig, epochs: int = 30, seed: int = 0
) -> TrainSettings:
    """A training of the gap on all cores."""
    return TrainSettings(
        Data(data=(data,), target="gap", split=split),
        model,
        Optimizer(),
        Schedule(max_epochs=epochs, pack_molecules=BATCH),
        seed=seed,
    )


def held_out(args: argparse.Namespace, settings: TrainSettings, limit: int | None) -> TrainSettings:
    """The same validation and test molecules for every number of training rows."""
    valid, test = (int(text) for text in args.held_out.split(","))
    names = {m for part in open_source(args.data, "gap").parts() for m in part.molecules.tolist()}
    split = f"{len(names) - valid - test},{valid},{test}"
    return replace(settings, rows=replace(settings.rows, split=split, limit=limit))


def trained(settings: TrainSettings, folder: Path | None = None) -> results.Errors:
    """Train, in a folder if it is to be kept; the errors on the test rows."""
    if folder is None:
        with tempfile.TemporaryDirectory() as scratch:
            return trained(settings, Path(scratch))
    prepared = prepare(settings)
    run = RunFolder(folder)
    run.start(settings, prepared.description)
    Training(prepared, run, lambda _: None).run(Interrupt())
    return run.predictor().errors([joined(prepared, "test")])


def joined(prepared: Prepared, name: str) -> Samples:
    """All rows of a side: train, valid or test."""
    return Samples.concatenate(list(prepared.sides[name].parts()))
