"""The part of a target that is subtracted before the network sees it, kept in float64.

An energy is almost entirely a sum over its atoms: references of the elements and a constant, fitted
to the training rows by least squares, leave numbers that a float32 network resolves. For quantities
that do not grow with the molecule only the mean is subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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
"""Singular values below this fraction of the largest one count as zero; its square root is the part
of a vector that may be outside of the row space (rounding leaves some 1e-13)."""


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
    def undetermined(self) -> Float64[np.ndarray, "_ values"]:
        """What the rows leave open: an orthonormal basis N of the null space of their matrix X.

        X has (element counts, 1) of each row. The rows determine the value of an element if its
        unit vector e lies in the row space of X, that is if N e = 0, and the sum of a composition c
        if N c = 0. One row can be enough: it says more than the free atom, which has no bonds.
        """
        _, sizes, basis = np.linalg.svd(self.factor[:, :-1])
        return basis[int((sizes > DEFICIENT * sizes.max(initial=0.0)).sum()) :]

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
    undetermined: tuple[tuple[float, ...], ...] = ()
    """Rows of `Totals.undetermined`, each with a number for every element and the constant."""
    from_free_atoms: bool = False
    """Whether free atoms decide what the training rows leave open (`nearest_to`)."""

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
        scale = EXACT_SCALE if exact else spread
        basis = tuple(map(tuple, totals.undetermined.tolist()))
        return cls(totals.elements, tuple(values), constant, scale=scale, undetermined=basis)

    def nearest_to(self, free_atoms: Mapping[str, float]) -> AtomReferences:
        """Let free atoms (by symbol, in the target's atomic unit) decide what rows leave open.

        Of all values v that fit as well, those nearest to the free atoms f are v + Nᵀ N (f - v),
        with N of `Totals.undetermined`: determined ones stay. Without a free atom of every open
        element nothing changes.
        """
        if not self.undetermined or {*self.open_elements} - {*free_atoms}:
            return self
        fitted = np.array([*self.values, self.constant])
        free = np.array([*(free_atoms.get(SYMBOLS[z], 0.0) for z in self.elements), 0.0])
        *values, constant = (fitted + self._basis.T @ (self._basis @ (free - fitted))).tolist()
        return replace(self, values=tuple(values), constant=constant, from_free_atoms=True)

    @property
    def open_elements(self) -> list[str]:
        """Symbols of the elements whose values the training rows do not determine."""
        is_open = np.linalg.norm(self._basis, axis=0)[:-1] > DEFICIENT**0.5
        return [SYMBOLS[z] for z, unsure in zip(self.elements, is_open, strict=True) if unsure]

    @property
    def _basis(self) -> Float64[np.ndarray, "_ values"]:
        return np.array(self.undetermined).reshape(-1, len(self.elements) + 1)

    def determines(self, samples: Samples) -> Bool[np.ndarray, " R"]:
        """Which rows, of elements of the training rows, have a sum that these determine."""
        counts = composition(samples)[:, list(self.elements)]
        rows = np.hstack([counts, np.ones((len(samples), 1))])
        outside = np.linalg.norm(rows @ self._basis.T, axis=1)
        return outside <= DEFICIENT**0.5 * np.linalg.norm(rows, axis=1)

    def covers(self, samples: Samples) -> Bool[np.ndarray, " R"]:
        """Which rows have only elements of the training rows, and a sum that means something."""
        new = np.ones(HIGHEST + 1, dtype=bool)
        new[list(self.elements)] = False
        known = composition(samples) @ new == 0
        return known if self.from_free_atoms else known & self.determines(samples)

    def doubt(self, numbers: UInt8[np.ndarray, " A"]) -> str:
        """Why a row of these atoms is not covered, or not determined, in words that follow it."""
        here = [SYMBOLS[z] for z in sorted({*numbers.tolist()})]
        seen = [SYMBOLS[z] for z in self.elements]
        if new := ", ".join(x for x in here if x not in seen):
            return f"has {new}, which no training row had; the model is for {', '.join(seen)}"
        unsure = ", ".join(x for x in here if x in self.open_elements) or "a composition"
        rest = "value rests on free atoms" if self.from_free_atoms else "a value would mean nothing"
        return f"has {unsure} whose reference the training rows do not determine: {rest}"

    def baseline(self, samples: Samples) -> Float64[np.ndarray, " R"]:
        """The constant and the atoms' values, in the target's atomic unit.

        Raises:
            UserError: a row is not covered.
        """
        counts, known = composition(samples), self.covers(samples)
        if not known.all():
            row = samples[int(np.flatnonzero(~known)[0])]
            why = self.doubt(row.numbers)
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

    def as_text(self) -> str:
        """The values in the target's atomic unit by element; `*` where rows leave them open."""
        stars = dict.fromkeys(self.open_elements, " *")
        names = [*(SYMBOLS[z] for z in self.elements), "constant"]
        values = zip(names, [*self.values, self.constant], strict=True)
        return ", ".join(f"{name} {value:.4f}{stars.get(name, '')}" for name, value in values)

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
            basis = np.array(record.get("undetermined", ()), float).reshape(-1, len(elements) + 1)
        except (LookupError, TypeError, ValueError) as error:
            raise UserError(f"the references in run.json are damaged ({error!r})") from None
        rows, free = tuple(map(tuple, basis.tolist())), bool(record.get("from_free_atoms"))
        return cls(elements, values, constant, scale=scale, undetermined=rows, from_free_atoms=free)
