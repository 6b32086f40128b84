"""How a quantity is distributed over rows that are seen once and not kept.

Count, mean, standard deviation, least and largest value are those of all rows; percentiles and
histograms come from a uniform random sample of at most SAMPLE values, which is all of them in a
small dataset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

SAMPLE = 200_000
"""Values kept: percentiles are then good to about 0.1 % of the rows."""

PERCENTILES = (1, 5, 25, 50, 75, 95, 99)


@dataclass
class Distribution:
    """One quantity; `name` ends with its unit, as in `gap_ev`."""

    name: str
    title: str
    """What a picture calls it, unit in brackets."""
    whole: bool = False
    """Whether its values are whole numbers."""
    limit: int = SAMPLE
    count: int = 0
    mean: float = 0.0
    least: float = np.inf
    most: float = -np.inf
    _squares: float = 0.0
    _values: np.ndarray = field(default_factory=lambda: np.zeros(0))
    _keys: np.ndarray = field(default_factory=lambda: np.zeros(0))
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def add(self, values: np.ndarray) -> None:
        """Take in the values of some rows; those that are not finite are passed over."""
        values = np.asarray(values, dtype=np.float64)
        values = values[np.isfinite(values)]
        if not values.size:
            return
        # Mean and variance of two parts together: Chan, Golub and LeVeque, STAN-CS-79-773 (1979).
        mean, total = float(values.mean()), self.count + values.size
        delta = mean - self.mean
        self._squares += float(np.sum((values - mean) ** 2))
        self._squares += delta**2 * self.count * values.size / total
        self.mean += delta * values.size / total
        self.count = total
        self.least = min(self.least, float(values.min()))
        self.most = max(self.most, float(values.max()))
        self._keep(values)

    @property
    def std(self) -> float:
        """Standard deviation over all rows; NaN if there are none."""
        return float(np.sqrt(self._squares / self.count)) if self.count else float("nan")

    @property
    def sample(self) -> np.ndarray:
        """The values that were kept."""
        return self._values

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        if not self.count:
            return {"count": 0}
        percentiles = np.percentile(self._values, PERCENTILES)
        return {
            "count": self.count,
            "mean": self.mean,
            "std": self.std,
            "min": self.least,
            "max": self.most,
            "percentiles": dict(zip(map(str, PERCENTILES), percentiles.tolist(), strict=True)),
            "percentiles_from": self._values.size,
        }

    def _keep(self, values: np.ndarray) -> None:
        """Every value draws a number; the values with the least numbers are the sample."""
        self._values = np.concatenate([self._values, values])
        self._keys = np.concatenate([self._keys, self._random.random(values.size)])
        if self._values.size > self.limit:
            kept = np.argpartition(self._keys, self.limit)[: self.limit]
            self._values, self._keys = self._values[kept], self._keys[kept]
