"""From windows of shuffled rows to the arrays of a step, and how far a training is with them.

Shape legend: I, D, S as in `step`; A, M, E as in `pack`.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from schnet.network.pack import Graphs, Pack, PackShape, empty, fill, stack
from schnet.network.packing import deal
from schnet.samples.references import AtomReferences
from schnet.samples.samples import Samples
from schnet.samples.targets import MEV_PER_ANGSTROM, Target
from schnet.training.step import StepReport
from schnet.training.streaming import RowStream


class CallPlace(NamedTuple):
    """The next call of the step in a training."""

    epoch: int = 0
    window: int = 0
    call: int = 0
    """Number of the call within the window."""


@dataclass
class TrainingProgress:
    """How far a training is; the note in a checkpoint."""

    place: CallPlace = field(default_factory=CallPlace)
    best_mae: float = math.inf
    """Of the validation rows; with forces the weighted mean of both MAE (`Errors.judged`)."""
    best_epoch: int = 0
    seconds: float = 0.0
    loss: float = 0.0
    """This and the next two are sums over the molecules of the epoch so far."""
    absolute_error: float = 0.0
    molecules: float = 0.0
    gradient_norm: float = 0.0
    """Largest of the epoch so far."""
    epoch_seconds: float = 0.0
    forces_error: float = 0.0
    """Sum over the components of forces of the epoch so far, and their number."""
    components: float = 0.0
    examples: float = 0.0
    """Molecules of the whole training so far, each counted as often as it was seen."""

    def count(self, report: StepReport) -> None:
        """Add the updates of a call."""
        molecules = np.asarray(report.molecules, np.float64)
        self.loss += float(np.asarray(report.loss, np.float64) @ molecules)
        self.absolute_error += float(np.asarray(report.absolute_error, np.float64).sum())
        self.molecules += float(molecules.sum())
        self.examples += float(molecules.sum())
        self.forces_error += float(np.asarray(report.forces_error, np.float64).sum())
        self.components += float(np.asarray(report.components, np.float64).sum())
        self.gradient_norm = max(self.gradient_norm, float(np.max(report.gradient_norm)))

    def maes(self, target: Target, scale: float) -> tuple[float, float]:
        """MAE of the epoch so far, in which there were molecules.

        Args:
            target: what is learned.
            scale: `AtomReferences.scale`.

        Returns:
            That of the target, in its display unit; that of the components of forces in
            meV/Angstrom, NaN without forces.
        """
        mae = scale * target.display_per_atomic * self.absolute_error / self.molecules
        forces = scale * MEV_PER_ANGSTROM * self.forces_error / max(self.components, 1.0)
        return mae, forces if target.has_forces else math.nan

    def next_epoch(self) -> None:
        """Reset the sums of the epoch."""
        self.place = CallPlace(self.place.epoch + 1)
        self.loss = self.absolute_error = self.molecules = 0.0
        self.gradient_norm = self.epoch_seconds = self.forces_error = self.components = 0.0


class Call(NamedTuple):
    """Arrays for one call of the step, and the place after it."""

    packs: Pack
    """[I, D, S, ...]"""
    then: CallPlace


@dataclass(frozen=True, eq=False)
class Batches:
    """The calls of a training's epochs."""

    stream: RowStream
    shape: PackShape
    graphs: Graphs
    references: AtomReferences
    lead: tuple[int, int, int]
    """I, D, S"""

    def expected_packs(self, histogram: Counter[int]) -> int:
        """Approximate number of packs in an epoch."""
        atoms = sum(n * count for n, count in histogram.items())
        pairs = sum(self.graphs.most_pairs(n) * count for n, count in histogram.items())
        return int(np.ceil(max(atoms / self.shape.atoms, pairs / self.shape.pairs, 1.0)))

    def expected_updates(self, packs: int) -> int:
        """Number of updates in an epoch of this many packs, for planning the learning rate."""
        _, devices, accumulation = self.lead
        return -(-packs // (devices * accumulation))

    def calls(self, start: CallPlace) -> Iterator[Call]:
        """The rest of an epoch, from a place on. Packs without molecules, which change nothing,
        complete the last call of a window."""
        epoch = start.epoch
        for number, samples in enumerate(self.stream.windows(epoch, start.window), start.window):
            skip = start.call if number == start.window else 0
            yield from self._window(samples, epoch, number, skip=skip)

    def _window(self, samples: Samples, epoch: int, window: int, skip: int) -> Iterator[Call]:
        random = np.random.default_rng((self.stream.seed, epoch, window, 1))
        dealt = deal(samples.sizes, self.shape, self.graphs, random=random)
        order = random.permutation(len(dealt)).tolist()  # the packs dealt last are less full
        targets, scale = self.references.subtract(samples), self.references.scale
        nothing, per_call = empty(self.shape), int(np.prod(self.lead))
        for call, first in enumerate(range(0, len(order), per_call)):
            if call < skip:
                continue
            chosen = order[first : first + per_call]
            packs = [
                fill(
                    self.shape,
                    self.graphs,
                    samples,
                    chosen=dealt[i],
                    targets=targets,
                    forces_scale=scale,
                )
                for i in chosen
            ]
            packs += [nothing] * (per_call - len(packs))
            yield Call(stack(packs, self.lead), CallPlace(epoch, window, call + 1))
