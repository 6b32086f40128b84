"""QM1B's column `std`: the spread of the energies at convergence, by which QM1B was filtered.

Of QM1B's 20 cycles the last five came after convergence; `--fixed-cycles` makes the same. Otherwise
an SCF ends at convergence, and its last five cycles (`energy_std`) include early ones and estimates
from the coarse grid. So only the last two count: they differ by less than a threshold, and their
standard deviation is below half of it. A record of `--history` may end with another start.
"""

import numpy as np
from jaxtyping import Float64

from qm1b.rows.batch import Batch
from qm1b.rows.schema import CONVERGED, Json

PUBLISHED, MEANING = "std", "std_meaning"
"""The column, and the entry in a file's metadata that says what it is; older files lack the entry,
and their `std` is `energy_std`."""

MOST_CHANGE_HARTREE = {"float32": 1e-4, "mixed": 1e-4, "float64": 1e-9}
"""Change of the energy with which an SCF of each precision may end (`Precision.energy_change`)."""


def published_std(batch: Batch, settings: Json) -> Float64[np.ndarray, " R"]:
    """The spread of each row in hartree, or what it is at most.

    That of the last five cycles is taken as it is without settings or `status`, as in QM1B's files.
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
    return "half of the threshold on the energy at convergence, or energy_std if that is smaller"
