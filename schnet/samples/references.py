"""The part of a target that is subtracted before the network sees it, kept in float64.

An energy is almost entirely a sum over its atoms: references of the elements and a constant, fitted
to the training rows by least squares, leave numbers that a float32 network resolves. For quantities
that do not grow with the molecule only the mean is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int, UInt8

from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.elements.spellings import SYMBOLS
from schnet.errors import UserError
from schnet.samples.samples import Samples

HIGHEST = 118

EXACT_SCALE = 1 / HARTREE_TO_EV
"""One eV: what references leave of the energies of small molecules is of this size. It is the scale
where too few training rows leave nothing to measure it by."""

DEFICIENT = 1e-10
"""Singular values below this fraction of the largest one count as zero."""


def composition(samples: Samples) -> Int[np.ndarray, "R 119"]:
    """Number of atoms of each atomic number in each row."""
    width = HIGHEST + 1
    row = np.repeat(np.arange(len(samples)), samples.sizes)
    counts = np.bincount(row * width + samples.numbers, minlength=len(samples) * width)
    return counts.reshape(len(samples), width)


@dataclass
class Totals:
    """All that a fit needs of the training rows, collected as they stream by.

    The rows (element counts, 1, target) are reduced to a small matrix with the same inner products,
    the triangular factor of their QR decomposition: unlike sums of squares it keeps the digits of a
    residual of millihartree in energies of hundreds of hartree. Only a new element adds a column,
    so its size does not depend on the number of rows.
    """

    n: int = 0
    elements: tuple[int, ...] = ()
    """Atomic numbers that occur, ascending."""
    factor: Float64[np.ndarray, "_ columns"] = field(default_factory=lambda: np.zeros((0, 2)))
    """Columns: one for each element, the constant, the target."""

    def add(self, samples: Samples) -> None:
        """Count rows in; their targets must be finite."""
        if not len(samples):
            return
        counts = composition(samples)
        present = tuple(np.flatnonzero(counts.any(axis=0)).tolist())
        ones = np.ones((len(samples), 1))
        columns = np.hstack([counts[:, present], ones, samples.targets[:, None]])
        union = tuple(sorted({*self.elements, *present}))
        rows = [_spread(self.factor, self.elements, union), _spread(columns, present, union)]
        self.factor = np.asarray(np.linalg.qr(np.vstack(rows), mode="r"))
        self.n += len(samples)
        self.elements = union

    @property
    def mean(self) -> float:
        """Mean of the targets; raises UserError if there are no rows."""
        self.check()
        constant = self.factor[:, -2]
        return float(constant @ self.factor[:, -1] / self.n)

    @property
    def variance(self) -> float:
        """Variance of the targets, over n; raises UserError if there are no rows."""
        rest = self.factor[:, -1] - self.mean * self.factor[:, -2]
        return float(rest @ rest / self.n)

    @property
    def determined(self) -> bool:
        """Whether the rows determine a value for each element, and a constant."""
        sizes = np.linalg.svd(self.factor[:, :-1], compute_uv=False)
        enough = len(sizes) == len(self.elements) + 1
        return enough and bool(sizes[-1] > DEFICIENT * sizes[0])

    def check(self) -> None:
        """Raise UserError if there are no rows."""
        if not self.n:
            raise UserError("there are no training rows; give more data, or another --split")


def _spread(
    columns: Float64[np.ndarray, "_ _"], elements: Sequence[int], union: Sequence[int]
) -> Float64[np.ndarray, "_ _"]:
    """A matrix with a column of zeros for each missing element."""
    wider = np.zeros((len(columns), len(union) + 2))
    wider[:, [union.index(z) for z in elements]] = columns[:, :-2]
    wider[:, -2:] = columns[:, -2:]
    return wider


@dataclass(frozen=True)
class AtomReferences:
    """target = constant + sum of the atoms' values + scale * (output of the network)."""

    elements: tuple[int, ...]
    """Atomic numbers of the training rows."""
    values: tuple[float, ...]
    """Value of each element in the target's atomic unit; zeros if the target does not grow with the
    molecule."""
    constant: float
    scale: float
    """Standard deviation of the rest, in the target's atomic unit; if there is no rest, EXACT_SCALE
    for a sum over atoms, else 1."""

    @classmethod
    def fit(cls, totals: Totals, extensive: bool) -> AtomReferences:
        """Fit to the training rows.

        Args:
            totals: of the training rows.
            extensive: fit a value for each element (`Target.extensive`); else only the mean. If the
                rows do not determine the values, as when all molecules have the same composition,
                the smallest values that fit are taken.

        Raises:
            UserError: there are no rows.
        """
        if not extensive:
            spread = totals.variance**0.5
            zeros = (0.0,) * len(totals.elements)
            return cls(totals.elements, zeros, totals.mean, scale=spread or 1.0)
        totals.check()
        matrix, right = totals.factor[:, :-1], totals.factor[:, -1]
        solution = np.linalg.lstsq(matrix, right, rcond=DEFICIENT)[0]
        rest = right - matrix @ solution
        spread = float(np.sqrt(rest @ rest / totals.n))
        *values, constant = solution.tolist()
        # A rest as small as rounding errors is nothing to scale by.
        exact = spread <= 1e-12 * float(np.abs(right).max())
        return cls(totals.elements, tuple(values), constant, scale=EXACT_SCALE if exact else spread)

    def covers(self, samples: Samples) -> Bool[np.ndarray, " R"]:
        """Which rows have only elements of the training rows."""
        new = np.ones(HIGHEST + 1, dtype=bool)
        new[list(self.elements)] = False
        return composition(samples) @ new == 0

    def new_elements(self, numbers: UInt8[np.ndarray, " A"]) -> str:
        """The elements among these that no training row had, in words for a row that has some."""
        new = ", ".join(SYMBOLS[z] for z in sorted({*numbers.tolist()} - {*self.elements}))
        seen = ", ".join(SYMBOLS[z] for z in self.elements)
        return f"has {new}, which no training row had; the model is for {seen}"

    def baseline(self, samples: Samples) -> Float64[np.ndarray, " R"]:
        """The constant and the atoms' values, in the target's atomic unit.

        Raises:
            UserError: a row has an element that no training row had.
        """
        counts, known = composition(samples), self.covers(samples)
        if not known.all():
            row = samples[int(np.flatnonzero(~known)[0])]
            why = self.new_elements(row.numbers)
            raise UserError(f"{row.key} ({row.smiles or 'no SMILES'}) {why}")
        return self.constant + counts[:, list(self.elements)] @ np.array(self.values, np.float64)

    def subtract(self, samples: Samples) -> Float64[np.ndarray, " R"]:
        """The residuals that the network learns, in units of `scale`; raises as `baseline`."""
        return (samples.targets - self.baseline(samples)) / self.scale

    def add(
        self, samples: Samples, residuals: Float64[np.ndarray, " R"]
    ) -> Float64[np.ndarray, " R"]:
        """The target in its atomic unit from the network's residuals; raises as `baseline`."""
        return self.baseline(samples) + self.scale * residuals

    def forces(self, residuals: Float32[np.ndarray, "atoms 3"]) -> Float64[np.ndarray, "atoms 3"]:
        """Forces in hartree/bohr from the network's, in units of `scale` per Bohr: the rest of the
        target does not depend on the positions."""
        return self.scale * residuals.astype(np.float64)

    def to_dict(self) -> dict[str, object]:
        """The record for run.json; JSON keeps every bit of a float64."""
        return asdict(self) | {
            "elements": [SYMBOLS[z] for z in self.elements],
            "values": list(self.values),
        }

    @classmethod
    def none(cls, elements: tuple[int, ...], scale: float) -> AtomReferences:
        """Nothing to subtract; the network learns the target in a unit of this size."""
        return cls(elements, (0.0,) * len(elements), 0.0, scale=scale)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> AtomReferences:
        """The references in a record of `to_dict`; raises UserError if it is none."""
        try:
            elements = tuple(SYMBOLS.index(symbol) for symbol in record["elements"])
            values = tuple(map(float, record["values"]))
            constant, scale = float(record["constant"]), float(record["scale"])
        except (LookupError, TypeError, ValueError) as error:
            raise UserError(f"the references in run.json are damaged ({error!r})") from None
        return cls(elements, values, constant, scale=scale)
