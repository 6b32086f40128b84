"""The distribution of a quantity over rows that are read once and not kept.

Count, mean, standard deviation, least and largest value are over all rows. Percentiles and
histograms come from a uniform random sample of at most SAMPLE values, in a small dataset from all
of them.
"""

from dataclasses import dataclass, field

import numpy as np

SAMPLE = 200_000
"""Values kept, enough for percentiles within about 0.1 % of the rows."""

PERCENTILES = (1, 5, 25, 50, 75, 95, 99)


@dataclass
class Distribution:
    """The distribution of one quantity."""

    name: str
    """Ends with the unit, as in `gap_ev`."""
    title: str
    """Name in a picture, with the unit in brackets."""
    whole: bool = False
    """Whether its values are whole numbers."""
    limit: int = SAMPLE
    count: int = 0
    mean: float = 0.0
    least: float = np.inf
    most: float = -np.inf
    sample: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """The values that are kept, at most `limit`."""
    _squares: float = 0.0
    _keys: np.ndarray = field(default_factory=lambda: np.zeros(0))
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def add(self, values: np.ndarray) -> None:
        """Add the values of some rows; values that are not finite are ignored."""
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

    def to_dict(self) -> dict[str, object]:
        """Plain numbers, for JSON."""
        if not self.count:
            return {"count": 0}
        percentiles = np.percentile(self.sample, PERCENTILES)
        return {
            "count": self.count,
            "mean": self.mean,
            "std": self.std,
            "min": self.least,
            "max": self.most,
            "percentiles": dict(zip(map(str, PERCENTILES), percentiles.tolist(), strict=True)),
            "percentiles_from": self.sample.size,
        }

    def _keep(self, values: np.ndarray) -> None:
        """Each value draws a random key; the values with the least keys are the sample."""
        self.sample = np.concatenate([self.sample, values])
        self._keys = np.concatenate([self._keys, self._random.random(values.size)])
        if self.sample.size > self.limit:
            kept = np.argpartition(self._keys, self.limit)[: self.limit]
            self.sample, self._keys = self.sample[kept], self._keys[kept]
