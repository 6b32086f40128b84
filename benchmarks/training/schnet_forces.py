"""Energies and forces beside PyTorch-Geometric's SchNet, from the same rows.

errors   of the test rows after the same epochs, in meV and meV/Angstrom
rates    rows/s of training and prediction; medians of rounds in turn, data loading and packing
         included

Needs the extras `train` and `pyg`, and a dataset of `qm1b generate --forces`.  Both networks have
the same size, rows, residuals to learn, loss, weight of the forces, mean number of molecules in a
batch, update rule, learning rates and epochs, and both keep the weights of the best validation.
They do not have the same initial weights and order of molecules.
"""

import argparse
import functools
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.training.fitting import BATCH, joined, settings_for, trained
from benchmarks.training.speed import Ours
from schnet.network.config import PRESETS
from schnet.runs.settings import TrainSettings
from schnet.samples.accuracy import Errors, Predicted
from schnet.training.prepare import Prepared, prepare

BOUND = 1.25
"""How many times as large as PyTorch-Geometric's our errors may be after the same epochs."""

FASTER = {"train": 1.5, "predict": 1.0}
"""How many times as many rows per second."""

CALLS = 14
"""Updates per round of the rates."""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "parts", PARTS)
    parser.add_argument("--data", type=Path, required=True, help="of qm1b generate --forces")
    parser.add_argument("--split", default="0.8,0.1,0.1", help="fractions or numbers of molecules")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    parts = {name: functools.partial(part, args, settings(args)) for name, part in PARTS.items()}
    return harness.run_parts(parts, args.parts, args.out)


def settings(args: argparse.Namespace) -> TrainSettings:
    """The training of both."""
    found = settings_for(args.data, args.split, PRESETS["small"], args.epochs, args.seed)
    rows = replace(found.rows, target="forces+energy")
    return replace(found, rows=rows, model=replace(found.model, readout="sum"))


def errors(args: argparse.Namespace, chosen: TrainSettings) -> tuple[Any, list[str]]:
    """Of both sides; missed if ours are larger than the bound."""
    prepared = prepare(chosen)
    print(f"{prepared.rows} training rows, {args.epochs} epochs")
    sides = {"ours": trained(chosen), "PyG": peer_errors(prepared, args.epochs, args.seed)}
    rows = [{"side": name, **figures(found)} for name, found in sides.items()]
    harness.table(rows)
    ours, theirs = rows
    missed = [
        f"{name}: {ours[name]:.1f}, PyG {theirs[name]:.1f}"
        for name in ("energy", "forces")
        if ours[name] > BOUND * theirs[name]
    ]
    return {"rows": prepared.rows, "epochs": args.epochs, "sides": rows}, missed


def figures(found: Errors) -> dict[str, Any]:
    """MAE in meV and meV/Angstrom, and those without a network."""
    assert found.forces is not None
    return {
        "energy": found.mae,
        "forces": found.forces.mae,
        "atoms only": found.mean_predictor,
        "no forces": found.forces.zero_forces,
        "test rows": found.molecules,
    }


def peer_errors(prepared: Prepared, epochs: int, seed: int) -> Errors:
    """Theirs, at the epoch with the best validation."""
    from benchmarks.training import pyg

    references, optimizer = prepared.references, prepared.settings.optimizer
    sides = {name: joined(prepared, name) for name in ("train", "valid", "test")}
    data = {
        name: pyg.graphs(one, references.subtract(one), references.scale)
        for name, one in sides.items()
    }

    def judge(model: Any, name: str) -> Errors:
        values, forces = pyg.predict_forces(model, data[name], BATCH)
        predicted = Predicted(references.add(sides[name], values), references.forces(forces))
        known, baseline = Predicted.in_file(sides[name]), references.baseline(sides[name])
        return Errors.of(prepared.target, predicted, known, baseline, 0)

    least, found = np.inf, None
    model = pyg.network(prepared.settings.model, seed)
    for _, mean in pyg.epochs(model, data["train"], optimizer, epochs, BATCH, seed):
        judged = judge(mean, "valid").judged(optimizer.forces_weight)
        if judged < least:
            least, found = judged, judge(mean, "test")
    assert found is not None
    return found


def rates(args: argparse.Namespace, chosen: TrainSettings) -> tuple[Any, list[str]]:
    """Medians over rounds in turn, and the medians of the rounds' ratios."""
    from benchmarks.training import pyg

    prepared = prepare(chosen)
    samples = joined(prepared, "train")
    some = samples.take(np.arange(min(len(samples), CALLS * BATCH)))
    scale, optimizer = prepared.references.scale, chosen.optimizer
    data = pyg.graphs(some, prepared.references.subtract(some), scale)
    model, ours = pyg.network(chosen.model), Ours(prepared, samples)
    n = len(some)
    sides = {
        "train": lambda: ours.train(CALLS),
        "pyg_train": lambda: n / next(pyg.epochs(model, data, optimizer, 1, BATCH, 0))[0],
        "predict": lambda: n / harness.timed(ours.training.predictor().with_forces, some)[0],
        "pyg_predict": lambda: n / harness.timed(pyg.predict_forces, model, data, BATCH)[0],
    }
    for side in sides.values():
        side()  # compiles and warms up
    rounds = harness.in_turn(sides, args.rounds)
    found = {name: median(values) for name, values in rounds.items()}
    for task in FASTER:
        found[f"{task}_ratio"] = median(np.divide(rounds[task], rounds[f"pyg_{task}"]).tolist())
    harness.table([found])
    return found, [
        f"{task}: {found[f'{task}_ratio']:.2f} times PyG, not {least}"
        for task, least in FASTER.items()
        if found[f"{task}_ratio"] < least
    ]


PARTS = {"errors": errors, "rates": rates}


if __name__ == "__main__":
    sys.exit(main())
