"""A trained network with everything that a prediction needs: references, units, neighbours."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float, Float64, Shaped

from qm1b.rows.batch import gather
from schnet.errors import UserError
from schnet.network.config import ModelConfig
from schnet.network.filter_tables import FilterTables, predict, tabulate
from schnet.network.forces import predict_with_forces
from schnet.network.model import SchNet
from schnet.network.pack import Graphs, Pack, PackShape, fill
from schnet.network.packing import deal, shape_for
from schnet.samples.accuracy import Errors, Predicted
from schnet.samples.prefetch import prefetch
from schnet.samples.references import AtomReferences
from schnet.samples.samples import Samples
from schnet.samples.targets import Target


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
            UserError: a row has a reason (`reasons`) why it cannot be predicted; `known` has the
                others.
        """
        self._check(samples)
        if not len(samples):
            return np.zeros(0)
        return self.references.add(samples, self.residuals(samples, shape or self.shape(samples)))

    def with_forces(self, samples: Samples, shape: PackShape | None = None) -> Predicted:
        """Predict energies in hartree and the forces on all atoms in hartree/bohr.

        Args:
            samples: the rows.
            shape: slots of the packs, as in `__call__`.

        Raises:
            UserError: the target is no energy, or as `__call__`.
        """
        self.check_forces()
        self._check(samples)
        residuals, forces = np.zeros(len(samples)), np.zeros(samples.positions_bohr.shape)
        if not len(samples):
            return Predicted(residuals, forces)
        for chosen, pack in prefetch(self.packs(samples, shape or self.shape(samples))):
            outputs = predict_with_forces(self.model, pack)
            residuals[chosen] = np.asarray(outputs.energies)[: len(chosen)]
            index, _ = gather(samples.atom_offset[chosen], samples.atom_offset[1:][chosen])
            forces[index] = self.references.forces(np.asarray(outputs.forces)[: len(index)])
        return Predicted(self.references.add(samples, residuals), forces)

    def predicted(self, samples: Samples, shape: PackShape | None = None) -> Predicted:
        """All that the target has, the forces included; raises as `__call__`."""
        if self.target.has_forces:
            return self.with_forces(samples, shape)
        return Predicted(self(samples, shape))

    def check_forces(self) -> None:
        """Raise UserError if the network has no forces."""
        if not self.target.extensive:
            raise UserError(
                f"the run predicts {self.target.name}: forces need one of the energy "
                "(`schnet train --target energy`, or `forces+energy` to learn them, too)"
            )

    def _check(self, samples: Samples) -> None:
        bad = np.flatnonzero(samples.reasons != "")
        if len(bad):
            row = samples[int(bad[0])]
            raise UserError(f"{row.key} ({row.smiles or 'no SMILES'}): {row.reason}")

    def known(self, samples: Samples) -> Samples:
        """The rows that can be predicted: those without a reason of `reasons`."""
        mask = self.reasons(samples) == ""
        return samples if mask.all() else samples.take(np.flatnonzero(mask))

    def reasons(self, samples: Samples, doubts: bool = False) -> Shaped[np.ndarray, " R"]:
        """Why each row cannot be predicted, '' if it can: its own reason, or one of the references;
        with `doubts` also what is to be said of a prediction."""
        reasons, fine = samples.reasons.copy(), self.references.covers(samples)
        if doubts:
            reasons[fine] = np.where(reasons == "", samples.doubts, reasons)[fine]
            fine &= self.references.determines(samples)
        for row in np.flatnonzero(~fine & (reasons == "")).tolist():
            reasons[row] = self.references.doubt(samples[row].numbers)
        return reasons

    def shape(self, samples: Samples) -> PackShape:
        """Slots of packs that suit these rows."""
        return shape_for(Counter(samples.sizes.tolist()), self.graphs, self.pack_molecules)

    def residuals(self, samples: Samples, shape: PackShape) -> Float64[np.ndarray, " R"]:
        """The network's output, in units of `references.scale`."""
        residuals = np.zeros(len(samples))
        for chosen, pack in prefetch(self.packs(samples, shape)):
            residuals[chosen] = np.asarray(predict(self.model, self.tables, pack))[: len(chosen)]
        return residuals

    def packs(self, samples: Samples, shape: PackShape) -> Iterator[tuple[list[int], Pack]]:
        """Packs of all rows, each with the numbers of its rows."""
        zeros: Float[np.ndarray, " R"] = np.zeros(len(samples))
        for chosen in deal(samples.sizes, shape, self.graphs, random=None):
            pack = fill(shape, self.graphs, samples, chosen=chosen, targets=zeros)
            yield chosen, jax.device_put(pack)  # jnp.asarray compiles a program for every shape

    def stream(self, parts: Iterable[Samples]) -> Iterator[tuple[Samples, Samples, Predicted]]:
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
            yield everything, samples, self.predicted(samples, shape)

    def errors(self, parts: Iterable[Samples]) -> Errors:
        """Errors over all rows of a stream; raises UserError if there are none."""
        predictions: list[Predicted] = []
        truths: list[Predicted] = []
        baselines, left_out = [np.zeros(0)], 0
        for everything, samples, predicted in self.stream(parts):
            left_out += len(everything) - len(samples)
            predictions.append(predicted)
            truths.append(Predicted.in_file(samples))
            baselines.append(self.references.baseline(samples))
        predicted, known = Predicted.joined(predictions), Predicted.joined(truths)
        return Errors.of(
            self.target, predicted, known, baseline=np.concatenate(baselines), left_out=left_out
        )
