"""Molecules per second in training and prediction, beside PyTorch-Geometric's."""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.training.fitting import BATCH, joined, settings_for
from schnet.network.config import PRESETS
from schnet.runs.run_folder import RunFolder
from schnet.samples.prefetch import prefetch
from schnet.samples.samples import Samples
from schnet.training.batches import CallPlace
from schnet.training.loop import Training
from schnet.training.prepare import Prepared, prepare

TARGETS = {"train": 1.5, "predict": 2.0}
"""How many times as fast as PyTorch-Geometric."""


def speed(args: argparse.Namespace) -> tuple[Any, list[str]]:
    """Rates of every preset, and the targets that were missed."""
    found = {name: rates(args, name) for name in args.presets}
    rows = [
        {
            "preset": name,
            "task": task,
            "ours/s": figures[task],
            "PyG/s": figures[f"pyg_{task}"],
            "ratio": figures[f"{task}_ratio"],
            "target": target,
        }
        for name, figures in found.items()
        for task, target in TARGETS.items()
    ]
    harness.table(rows)
    return found, [
        f"{row['preset']} {row['task']}: {row['ratio']:.2f} times PyG, not {row['target']}"
        for row in rows
        if row["ratio"] < row["target"]
    ]


def rates(args: argparse.Namespace, preset: str) -> dict[str, Any]:
    """Medians over rounds in turn, ours and theirs, and the medians of the rounds' ratios."""
    prepared = prepare(settings_for(args.qm9, args.split, PRESETS[preset]))
    samples = joined(prepared, "train")
    calls = 12 if preset == "schnet-9m" else 60
    peer, ours = Peer(prepared, samples), Ours(prepared, samples)
    sides = {
        "train": lambda: ours.train(calls),
        "pyg_train": lambda: peer.train(calls),
        "predict": lambda: ours.predict(calls),
        "pyg_predict": lambda: peer.predict(calls),
    }
    for side in sides.values():
        side()  # compiles and warms up
    rounds = harness.in_turn(sides, args.rounds)
    ratios = {
        f"{task}_ratio": median(np.divide(rounds[task], rounds[f"pyg_{task}"]).tolist())
        for task in TARGETS
    }
    medians = {name: median(found) for name, found in rounds.items()}
    return medians | ratios | {"rounds": list(zip(*rounds.values(), strict=True))}


class Ours:
    """Our training and prediction by the clock."""

    def __init__(self, prepared: Prepared, samples: Samples) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.samples = samples
        self.training = Training(prepared, RunFolder(Path(self.folder.name)), lambda _: None)
        self.epoch = 0

    def train(self, calls: int) -> float:
        """Molecules per second over this many updates."""
        molecules, begun = 0.0, time.perf_counter()
        while calls:
            ahead = prefetch(self.training.prepared.batches.calls(CallPlace(self.epoch)))
            for call in ahead:
                before = self.training.progress.molecules
                self.training._call(call)
                molecules += self.training.progress.molecules - before
                calls -= 1
                if not calls:
                    break
            self.epoch += 1
        return molecules / (time.perf_counter() - begun)

    def predict(self, calls: int) -> float:
        """Molecules per second, packing included."""
        predictor = self.training.predictor()
        some = self.samples.take(np.arange(min(len(self.samples), calls * BATCH)))
        shape = self.training.prepared.batches.shape
        return len(some) / harness.timed(predictor.residuals, some, shape)[0]


class Peer:
    """PyTorch-Geometric's."""

    def __init__(self, prepared: Prepared, samples: Samples) -> None:
        from benchmarks.training import pyg

        self.pyg = pyg
        self.config = prepared.settings.optimizer
        self.model = pyg.network(prepared.settings.model)
        self.data = pyg.graphs(samples, prepared.references.subtract(samples))

    def train(self, calls: int) -> float:
        """Molecules per second over this many updates."""
        some = self.data[: calls * BATCH]
        return len(some) / next(self.pyg.epochs(self.model, some, self.config, 1, BATCH, 0))[0]

    def predict(self, calls: int) -> float:
        """Molecules per second."""
        some = self.data[: calls * BATCH]
        return len(some) / harness.timed(self.pyg.predict, self.model, some, BATCH)[0]
