"""A trained network with everything that a prediction needs: references, units, neighbours."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Shaped

from schnet.errors import UserError
from schnet.network.config import ModelConfig
from schnet.network.filter_tables import FilterTables, predict, tabulate
from schnet.network.model import SchNet
from schnet.network.pack import Graphs, Pack, PackShape, fill
from schnet.network.packing import deal, shape_for
from schnet.samples.prefetch import prefetch
from schnet.samples.references import AtomReferences
from schnet.samples.samples import Samples
from schnet.samples.targets import Target


class Errors(NamedTuple):
    """Errors of predictions on rows with a known target, in the target's display unit."""

    mae: float
    rmse: float
    mean_predictor: float
    """MAE without the network's output: of the constant or sum over atoms that it is added to, or,
    if there is none (a dipole's length, an imported network), of the mean of these rows."""
    molecules: int
    """Number of rows."""
    left_out: int = 0
    """Rows with an element that no training row had."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predicts a target, in its atomic unit."""

    model: SchNet
    config: ModelConfig
    references: AtomReferences
    target: Target
    pack_molecules: int = 32

    @property
    def graphs(self) -> Graphs:
        """Which atoms are neighbours."""
        return Graphs(self.config.cutoff_bohr, self.config.neighbours)

    @cached_property
    def tables(self) -> FilterTables:
        """The network's filters, computed at the first prediction."""
        return tabulate(self.model)

    def __call__(
        self, samples: Samples, shape: PackShape | None = None
    ) -> Float64[np.ndarray, " R"]:
        """Predict all rows, in the target's atomic unit, in their order.

        Args:
            samples: the rows.
            shape: slots of the packs, into which each row must fit; by default chosen for the rows.

        Raises:
            UserError: a row has an element that no training row had, or a reason of its own why it
                cannot be predicted; `known` has the others.
        """
        if not len(samples):
            return np.zeros(0)
        bad = np.flatnonzero(samples.reasons != "")
        if len(bad):
            row = samples[int(bad[0])]
            raise UserError(f"{row.key} ({row.smiles or 'no SMILES'}): {row.reason}")
        return self.references.add(samples, self.residuals(samples, shape or self.shape(samples)))

    def known(self, samples: Samples) -> Samples:
        """The rows that can be predicted: those without a reason of `reasons`."""
        mask = self.reasons(samples) == ""
        return samples if mask.all() else samples.take(np.flatnonzero(mask))

    def reasons(self, samples: Samples) -> Shaped[np.ndarray, " R"]:
        """Why each row cannot be predicted, '' if it can: its own reason, or a new element."""
        found = samples.reasons.copy()
        for row in np.flatnonzero(~self.references.covers(samples) & (found == "")).tolist():
            found[row] = self.references.new_elements(samples[row].numbers)
        return found

    def shape(self, samples: Samples) -> PackShape:
        """Slots of packs that suit these rows."""
        return shape_for(Counter(samples.sizes.tolist()), self.graphs, self.pack_molecules)

    def residuals(self, samples: Samples, shape: PackShape) -> Float64[np.ndarray, " R"]:
        """The network's output, in units of `references.scale`."""
        found = np.zeros(len(samples))
        for chosen, pack in prefetch(self.packs(samples, shape)):
            found[chosen] = np.asarray(predict(self.model, self.tables, pack))[: len(chosen)]
        return found

    def packs(self, samples: Samples, shape: PackShape) -> Iterator[tuple[list[int], Pack]]:
        """Packs of all rows, each with the numbers of its rows."""
        zeros: Float[np.ndarray, " R"] = np.zeros(len(samples))
        for chosen in deal(samples.sizes, shape, self.graphs, None):
            pack = fill(shape, self.graphs, samples, chosen, zeros)
            yield chosen, jax.tree.map(jnp.asarray, pack)

    def stream(
        self, parts: Iterable[Samples]
    ) -> Iterator[tuple[Samples, Samples, Float64[np.ndarray, " known"]]]:
        """Predict part by part; a part uses the program of those before unless it is larger.

        Yields:
            All rows of a part, those that can be predicted (`known`), and their predictions.
        """
        shape: PackShape | None = None
        for everything in parts:
            samples = self.known(everything)
            if len(samples):
                own = self.shape(samples)
                shape = PackShape(*map(max, own, shape or own))
            yield everything, samples, self(samples, shape)

    def errors(self, parts: Iterable[Samples]) -> Errors:
        """Errors over all rows of a stream; raises UserError if there are none."""
        predicted, baselines, truths = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
        left_out = 0
        for everything, samples, values in self.stream(parts):
            left_out += len(everything) - len(samples)
            predicted.append(values)
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
        """Errors of predictions, given the rows' baselines and targets; raises as `errors`."""
        if not len(truth):
            also = f" but {left_out} with elements that no training row had" if left_out else ""
            raise UserError(
                f"there are no rows to evaluate{also}: give data, or a split that leaves some"
            )
        mean = baseline if baseline.any() else np.full(len(truth), truth.mean())
        unit, errors = self.target.display_per_atomic, predicted - truth
        return Errors(
            mae=unit * float(np.abs(errors).mean()),
            rmse=unit * float(np.mean(errors**2)) ** 0.5,
            mean_predictor=unit * float(np.abs(mean - truth).mean()),
            molecules=len(truth),
            left_out=left_out,
        )
