"""What the labels of a dataset are worth: their errors, as far as rows and `verify.json` have them.

Net force and torque are in the rows.  Errors against float64 and the noise of the grid need
PySCF: they come from `qm1b verify`, if it was run on the dataset as it is.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from qm1b.report.card.facts import Facts
from qm1b.report.stats import NET_FORCE, TORQUE
from qm1b.rows.schema import Json


class Worth(NamedTuple):
    """A line of the table: an error, and how large it is."""

    what: str
    unit: str
    rows: int = 0
    mean: float = float("nan")
    p95: float = float("nan")
    largest: float = float("nan")

    @property
    def is_measured(self) -> bool:
        """Whether any row has it."""
        return self.rows > 0


def of_labels(facts: Facts) -> list[Worth]:
    """The lines of the table; those of forces only if the run has forces.

    Raises:
        LookupError, TypeError, ValueError: `verify.json` is not what `qm1b verify` writes.
    """
    forces = bool(facts.settings.get("forces"))
    audit = (facts.audit or {}) if facts.is_verified else {}
    errors, turning = audit.get("errors", {}), audit.get("turning", {})
    against, turned = "against PySCF in float64", "spread over three orientations"
    lines = [
        *_of_rows(facts),
        _of_audit(f"energy, {against}", "meV", errors.get("energy_mev")),
        _of_audit(f"forces, {against}", "meV/Å", errors.get("force_mev_angstrom")),
        _of_audit(f"energy, {turned}", "meV", turning.get("energy_mev")),
        _of_audit(f"forces, {turned}", "meV/Å", turning.get("force_mev_angstrom")),
    ]
    return [line for line in lines if forces or line.what.startswith("energy")]


def _of_rows(facts: Facts) -> Iterator[Worth]:
    """Net force and torque of all converged rows."""
    of_name = {one.name: one for one in facts.stats.distributions}
    titles = {NET_FORCE: ("net force", "meV/Å"), TORQUE: ("torque", "meV")}
    for name, (what, unit) in titles.items():
        if name in of_name:
            one = of_name[name]
            p95 = float(np.percentile(one.sample, 95))
            yield Worth(what, unit, one.count, mean=one.mean, p95=p95, largest=one.most)


def _of_audit(what: str, unit: str, entry: Json | None) -> Worth:
    """A line from statistics in `verify.json`; without numbers if there are none."""
    if entry is None:
        return Worth(what, unit)
    mean, p95, largest = (float(entry[name]) for name in ("mae", "p95", "max"))
    return Worth(what, unit, int(entry["count"]), mean=mean, p95=p95, largest=largest)
