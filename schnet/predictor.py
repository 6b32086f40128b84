"""A trained network and all that it takes to use it: references, units, how pairs are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
from .step import predict
from .streaming import prefetch
from .targets import Target

PACK_MOLECULES = 32


class Errors(NamedTuple):
    """Of predictions on rows whose target is known, in the target's display unit."""

    mae: float
    rmse: float
    mean_predictor: float
    """MAE of the constant (or sum of atoms) that the network adds to."""
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

    def __call__(self, samples: Samples) -> Float64[np.ndarray, " R"]:
        """Predictions for all rows, in the target's atomic unit, in their order.

        Raises:
            UserError: an element that no training row had.
        """
        if not len(samples):
            return np.zeros(0)
        return self.references.add(samples, self.residuals(samples, self.shape(samples)))

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
            found[chosen] = np.asarray(predict(self.model, pack))[: len(chosen)]
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
        total, squares, constant, n, left_out = 0.0, 0.0, 0.0, 0, 0
        shape: PackShape | None = None
        for everything in parts:
            samples = self.known(everything)
            left_out += len(everything) - len(samples)
            if not len(samples):
                continue
            shape = _joined(shape, self.shape(samples))
            error = self.references.add(samples, self.residuals(samples, shape)) - samples.targets
            total += float(np.abs(error).sum())
            squares += float(error @ error)
            constant += float(np.abs(self.references.baseline(samples) - samples.targets).sum())
            n += len(samples)
        if not n:
            raise UserError(
                "there are no rows to evaluate: give data, or a split that leaves some."
            )
        unit = self.target.display_per_atomic
        rmse = unit * (squares / n) ** 0.5
        return Errors(unit * total / n, rmse, unit * constant / n, n, left_out)


def _joined(one: PackShape | None, other: PackShape) -> PackShape:
    """Slots that serve both, so that parts of a stream share a compiled program."""
    if one is None:
        return other
    return PackShape(
        max(one.atoms, other.atoms),
        max(one.molecules, other.molecules),
        max(one.pairs, other.pairs),
    )
