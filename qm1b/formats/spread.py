"""QM1B's column `std`: the spread of the energies after convergence, by which QM1B was filtered.

QM1B's rows had 20 cycles, of which the last five came after convergence; `--fixed-cycles` makes the
same. Otherwise an SCF ends at convergence, and its last five cycles (`energy_std`) include early
ones and estimates from the coarse grid. So only the last two count: they differ by less than the
threshold of the energy, and their standard deviation is at most half of it. The cycles of
`--history` are not used, because the last ones may be of a start that does not count.
"""

from types import MappingProxyType

import numpy as np
from jaxtyping import Float64

from qm1b.rows.batch import Batch
from qm1b.rows.schema import CONVERGED, Json

PUBLISHED, MEANING = "std", "std_meaning"
"""The column, and the entry in a file's metadata that says what it is. Files from before lack the
entry; their `std` is `energy_std`."""

MOST_CHANGE_HARTREE = MappingProxyType({"float32": 1e-4, "mixed": 1e-4, "float64": 1e-9})
"""Change of the energy with which an SCF of each precision may end (`Precision.energy_change`)."""


def published_std(batch: Batch, settings: Json) -> Float64[np.ndarray, " R"]:
    """The spread in hartree of each row's energies after convergence, at most.

    Args:
        batch: rows with `energy_std`, which is taken as it is without `status`.
        settings: of the run; empty if not known, as of QM1B's own files.
    """
    spread = batch["energy_std"]
    if not settings or settings.get("fixed_cycles") or "status" not in batch:
        return spread
    most = MOST_CHANGE_HARTREE[settings["precision"]] / 2
    return np.where(batch["status"] == CONVERGED, np.minimum(spread, most), spread)


def meaning(settings: Json) -> str:
    """What `std` is in the files of a run."""
    if settings.get("fixed_cycles"):
        return f"standard deviation of the last five of {settings['fixed_cycles']} cycle energies"
    return "upper bound of the standard deviation of the two energies that agreed at convergence"
