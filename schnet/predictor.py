"""A trained network and all that it takes to use it: references, units, how pairs are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from .config import ModelConfig
from .errors import UserError
from .model import SchNet
from .pack import Graphs, Pack, PackShape, fill
from .packing import deal, shape_for
from .references import AtomReferences
from .samples import Samples
from .streaming import prefetch
from .tables import FilterTables, predict, tabulate
from .targets import Target

PACK_MOLECULES = 32


class Errors(NamedTuple):
    """Of predictions on rows whose target is known, in the target's display unit."""

    mae: float
    rmse: float
    mean_predictor: float
    """MAE of the constant (or sum of atoms) that the network adds to; where there is none (a
    dipole's length, an imported network), of the mean of these rows."""
    molecules: int
    left_out: int = 0
    """Rows with an element that no training row had."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predicts a target, in its atomic unit."""

    model: SchNet
    config: ModelConfig
    references: AtomReferences
    target: Target
    pack_molecules: int = PACK_MOLECULES

    @property
    def graphs(self) -> Graphs:
        """How pairs are found."""
        return Graphs(self.config.cutoff_bohr, self.config.neighbours)

    @cached_property
    def tables(self) -> FilterTables:
        """The network's filters, made when the first row is predicted."""
        return tabulate(self.model)

    def __call__(
        self, samples: Samples, shape: PackShape | None = None
    ) -> Float64[np.ndarray, " R"]:
        """Predictions for all rows, in the target's atomic unit, in their order.

        Args:
            samples: the rows.
            shape: slots of the packs, each row must fit; those that suit the rows unless given.

        Raises:
            UserError: an element that no training row had.
        """
        if not len(samples):
            return np.zeros(0)
        return self.references.add(samples, self.residuals(samples, shape or self.shape(samples)))

    def known(self, samples: Samples) -> Samples:
        """The rows that can be predicted: those without elements that no training row had."""
        mask = self.references.knows(samples)
        return samples if mask.all() else samples.take(np.flatnonzero(mask))

    def shape(self, samples: Samples) -> PackShape:
        """Slots of packs that suit these rows."""
        return shape_for(Counter(samples.sizes.tolist()), self.graphs, self.pack_molecules)

    def residuals(self, samples: Samples, shape: PackShape) -> Float64[np.ndarray, " R"]:
        """What the network gives, in units of `references.scale`."""
        found = np.zeros(len(samples))
        for chosen, pack in prefetch(self.packs(samples, shape)):
            found[chosen] = np.asarray(predict(self.model, self.tables, pack))[: len(chosen)]
        return found

    def packs(self, samples: Samples, shape: PackShape) -> Iterator[tuple[list[int], Pack]]:
        """Packs of all rows, and which rows each one holds."""
        zeros: Float[np.ndarray, " R"] = np.zeros(len(samples))
        for chosen in deal(samples.sizes, shape, self.graphs, None):
            pack = fill(shape, self.graphs, samples, chosen, zeros)
            yield chosen, jax.tree.map(jnp.asarray, pack)

    def errors(self, parts: Iterable[Samples]) -> Errors:
        """Of the rows of a stream, at least one.

        Raises:
            UserError: there are no rows.
        """
        predicted, baselines, truths = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
        left_out = 0
        shape: PackShape | None = None
        for everything in parts:
            samples = self.known(everything)
            left_out += len(everything) - len(samples)
            if not len(samples):
                continue
            shape = joined(shape, self.shape(samples))
            predicted.append(self(samples, shape))
            baselines.append(self.references.baseline(samples))
            truths.append(samples.targets)
        return self.summary(
            np.concatenate(predicted), np.concatenate(baselines), np.concatenate(truths), left_out
        )

    def summary(
        self,
        predicted: Float64[np.ndarray, " R"],
        baseline: Float64[np.ndarray, " R"],
        truth: Float64[np.ndarray, " R"],
        left_out: int,
    ) -> Errors:
        """Of rows with these predictions, baselines and targets; raises as `errors`."""
        if not len(truth):
            also = f" but {left_out} with elements that no training row had" if left_out else ""
            raise UserError(
                f"there are no rows to evaluate{also}: give data, or a split that leaves some."
            )
        mean = baseline if baseline.any() else np.full(len(truth), truth.mean())
        unit, errors = self.target.display_per_atomic, predicted - truth
        return Errors(
            unit * float(np.abs(errors).mean()),
            unit * float(np.mean(errors**2)) ** 0.5,
            unit * float(np.abs(mean - truth).mean()),
            len(truth),
            left_out,
        )


def joined(one: PackShape | None, other: PackShape) -> PackShape:
    """Slots that serve both, so that parts of a stream share a compiled program."""
    if one is None:
        return other
    return PackShape(
        max(one.atoms, other.atoms),
        max(one.molecules, other.molecules),
        max(one.pairs, other.pairs),
    )
