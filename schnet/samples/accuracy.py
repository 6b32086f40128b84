"""What is predicted of rows, beside what their file says, and how far off it is.

Errors of energies, gaps and dipoles are per row, in the display unit of the target; those of forces
are per component, in meV/Angstrom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float64

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from schnet.errors import UserError
from schnet.samples.samples import Samples
from schnet.samples.targets import MEV_PER_ANGSTROM, Target

Simplest = Literal["mean predictor", "atom references alone"]
"""Predictions without a network."""

ATOMS_ONLY: Simplest = "atom references alone"

Forces = Float64[np.ndarray, "atoms 3"]
"""On every atom of some rows, in hartree/bohr."""


class Predicted(NamedTuple):
    """Predictions of rows, or what their file says."""

    values: Float64[np.ndarray, " R"]
    """In the target's atomic unit."""
    forces: Forces | None = None
    """None if the target has none."""

    @classmethod
    def in_file(cls, samples: Samples) -> Predicted:
        """What the file says."""
        forces = samples.forces
        return cls(samples.targets, None if forces is None else forces.astype(np.float64))

    @classmethod
    def joined(cls, parts: Sequence[Predicted]) -> Predicted:
        """The values of all parts together."""
        values = np.concatenate([np.zeros(0), *(part.values for part in parts)])
        forces = [part.forces for part in parts if part.forces is not None]
        return cls(values, np.concatenate(forces) if forces else None)


class ForceErrors(NamedTuple):
    """Errors of the components of predicted forces, in meV/Angstrom; all components count alike."""

    mae: float
    rmse: float
    zero_forces: float
    """MAE of a prediction of no forces at all: how large components are."""

    @classmethod
    def of(cls, predicted: Forces, truth: Forces) -> ForceErrors:
        """The errors of predictions."""
        errors = predicted - truth
        return cls(
            mae=MEV_PER_ANGSTROM * float(np.abs(errors).mean()),
            rmse=MEV_PER_ANGSTROM * float(np.mean(errors**2)) ** 0.5,
            zero_forces=MEV_PER_ANGSTROM * float(np.abs(truth).mean()),
        )


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
    """Rows that cannot be predicted (`AtomReferences.covers`)."""
    forces: ForceErrors | None = None
    """Of the forces, if the target has them."""
    simplest: Simplest = "mean predictor"
    """What `mean_predictor` is of: of an energy, a sum over atoms is the simplest prediction."""

    @classmethod
    def of(
        cls,
        target: Target,
        predicted: Predicted,
        known: Predicted,
        baseline: Float64[np.ndarray, " R"],
        left_out: int,
    ) -> Errors:
        """The errors of predictions.

        Args:
            target: what is predicted.
            predicted: the predictions.
            known: what the file says of the same rows.
            baseline: what the network's output is added to (`AtomReferences.baseline`).
            left_out: number of rows that cannot be predicted.

        Raises:
            UserError: there are no rows.
        """
        truth = known.values
        if not len(truth):
            also = f" but {left_out} of which the training rows say nothing" if left_out else ""
            raise UserError(
                f"there are no rows to evaluate{also}: give data, or a split that leaves some"
            )
        has_own = bool(baseline.any())
        mean = baseline if has_own else np.full(len(truth), truth.mean())
        unit, errors = target.display_per_atomic, predicted.values - truth
        forces = None
        if predicted.forces is not None and known.forces is not None:
            forces = ForceErrors.of(predicted.forces, known.forces)
        return cls(
            mae=unit * float(np.abs(errors).mean()),
            rmse=unit * float(np.mean(errors**2)) ** 0.5,
            mean_predictor=unit * float(np.abs(mean - truth).mean()),
            molecules=len(truth),
            left_out=left_out,
            forces=forces,
            simplest=ATOMS_ONLY if has_own and target.extensive else "mean predictor",
        )

    def judged(self, forces_weight: float) -> float:
        """The one number by which epochs are compared: the MAE, with forces its mean with theirs in
        meV/bohr, weighted as in the loss."""
        if self.forces is None:
            return self.mae
        of_forces = forces_weight * BOHR_TO_ANGSTROM * self.forces.mae
        return (self.mae + of_forces) / (1.0 + forces_weight)
