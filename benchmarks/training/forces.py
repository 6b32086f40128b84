"""Energies and forces beside PyTorch-Geometric's SchNet: errors on the same test rows, and rates.

Needs the extras `train` and `pyg`, and a dataset of `qm1b generate --forces`.  Both networks have
the same size, rows, residuals to learn, loss, weight of the forces, mean number of molecules in a
batch, update rule, learning rates and epochs, and both keep the weights of the best validation.
They do not have the same initial weights and order of molecules.  Rates include loading and
packing, not compiling.
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.training.fitting import BATCH, joined, settings_for, trained
from benchmarks.training.speed import Ours
from schnet.network.config import PRESETS
from schnet.runs.run_folder import RunFolder
from schnet.runs.settings import TrainSettings
from schnet.samples.accuracy import Errors, Predicted
from schnet.samples.samples import Samples
from schnet.training.prepare import Prepared, prepare

BOUNDS = {"energy": 1.25, "forces": 1.25}
"""How many times as large as PyTorch-Geometric's our errors may be after the same epochs."""

CALLS = 40
"""Updates that are timed, after as many that warm up."""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--data", type=Path, required=True, help="of qm1b generate --forces")
    parser.add_argument("--split", default="0.8,0.1,0.1", help="fractions or numbers of molecules")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    settings = settings_for(args.data, args.split, PRESETS["small"], args.epochs, args.seed)
    settings = replace(
        settings,
        rows=replace(settings.rows, target="forces+energy"),
        model=replace(settings.model, readout="sum"),
    )
    prepared = prepare(settings)
    rows = [
        {"side": "ours", **figures(*ours(settings))},
        {"side": "PyG", **figures(*peers(prepared, args.epochs, args.seed))},
    ]
    print(f"{prepared.rows} training rows, {args.epochs} epochs")
    harness.table(rows)
    missed = [
        f"{name}: {rows[0][name]:.1f}, PyG {rows[1][name]:.1f}"
        for name, bound in BOUNDS.items()
        if rows[0][name] > bound * rows[1][name]
    ]
    return harness.finish(args.out, {"rows": prepared.rows, "sides": rows}, missed)


def figures(errors: Errors, training: float, prediction: float) -> dict[str, float]:
    """Errors in meV and meV/Angstrom, rates in rows per second."""
    assert errors.forces is not None
    return {
        "energy": errors.mae,
        "forces": errors.forces.mae,
        "no network": errors.mean_predictor,
        "no forces": errors.forces.zero_forces,
        "train/s": training,
        "predict/s": prediction,
        "test rows": errors.molecules,
    }


def ours(settings: TrainSettings) -> tuple[Errors, float, float]:
    """Our test errors, and rows per second in training and prediction."""
    with tempfile.TemporaryDirectory() as folder:
        errors = trained(settings, Path(folder))
        predictor = RunFolder(Path(folder)).predictor()
    prepared = prepare(settings)
    everything = joined(prepared, "train")
    side = Ours(prepared, everything)
    side.train(CALLS)
    return errors, side.train(CALLS), rate(predictor.predicted, everything)


def rate(predict: Callable[[Samples], object], samples: Samples) -> float:
    """Rows per second of a prediction, after one that compiles."""
    predict(samples)
    return len(samples) / harness.median_seconds(lambda: predict(samples), 3)


def peers(prepared: Prepared, epochs: int, seed: int) -> tuple[Errors, float, float]:
    """The same of theirs, at the epoch with the best validation."""
    from benchmarks.training import pyg

    references, optimizer = prepared.references, prepared.settings.optimizer
    sides = {name: joined(prepared, name) for name in ("train", "valid", "test")}
    data = {
        name: pyg.graphs(s, references.subtract(s), references.scale) for name, s in sides.items()
    }

    def predict(model: Any, name: str) -> Predicted:
        values, forces = pyg.predict_forces(model, data[name], BATCH)
        return Predicted(references.add(sides[name], values), references.forces(forces))

    def errors(model: Any, name: str) -> Errors:
        known, baseline = Predicted.in_file(sides[name]), references.baseline(sides[name])
        return Errors.of(prepared.target, predict(model, name), known, baseline, 0)

    model = pyg.network(prepared.settings.model, seed)
    least, found, seconds = np.inf, None, []
    for took, mean in pyg.epochs(model, data["train"], optimizer, epochs, BATCH, seed):
        seconds.append(took)
        judged = errors(mean, "valid").judged(optimizer.forces_weight)
        if judged < least:
            least, found = judged, errors(mean, "test")
    assert found is not None
    training = prepared.rows / median(seconds)
    return found, training, rate(lambda _: predict(model, "train"), sides["train"])


if __name__ == "__main__":
    sys.exit(main())
