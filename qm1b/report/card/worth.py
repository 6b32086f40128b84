"""What the labels of a dataset are worth: their errors, as far as rows and `verify.json` have them.

Net force and torque are in the rows; the rest comes from `qm1b verify`, if it was run on them.
"""

from typing import NamedTuple

import numpy as np

from qm1b.report.card.facts import Facts
from qm1b.report.stats import NET_FORCE, TORQUE


class Worth(NamedTuple):
    """A line of the table: an error, and how large it is; `rows` is 0 if nobody measured it."""

    what: str
    unit: str
    rows: int = 0
    mean: float = float("nan")
    p95: float = float("nan")
    largest: float = float("nan")


def of_labels(facts: Facts) -> list[Worth]:
    """The lines of the table; those of forces only if the run has forces."""
    distributions = {one.name: one for one in facts.stats.distributions}
    lines = [
        Worth(
            what, unit, d.count, mean=d.mean, p95=float(np.percentile(d.sample, 95)), largest=d.most
        )
        for name, what, unit in ((NET_FORCE, "net force", "meV/Å"), (TORQUE, "torque", "meV"))
        if (d := distributions.get(name)) is not None
    ]
    audit = (facts.audit or {}) if facts.is_verified else {}
    quantities = [("energy_mev", "energy", "meV")]
    quantities += [("force_mev_angstrom", "forces", "meV/Å")] * bool(facts.settings.get("forces"))
    for part, how in (
        ("errors", "against PySCF in float64"),
        ("turning", "spread over three orientations"),
    ):
        for name, what, unit in quantities:
            entry = audit.get(part, {}).get(name)
            names = {"rows": "count", "mean": "mae", "p95": "p95", "largest": "max"}
            numbers = {} if entry is None else {key: entry[n] for key, n in names.items()}
            lines.append(Worth(f"{what}, {how}", unit, **numbers))
    return lines
