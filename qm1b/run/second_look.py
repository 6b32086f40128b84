"""`--stability suspect`: the rows whose stability is looked at after all.

They are those marked as suspect, and those with a gap so small that several states lie near each
other.  There the SCF has started from four guesses, and may still have missed the lowest state.
"""

from qm1b.rows.schema import CONVERGED, Row
from qm1b.rows.unit import Unit
from qm1b.settings import SUSPECT, RunSettings


def unchecked(unit: Unit, settings: RunSettings) -> list[Row]:
    """Rows of a unit to compute once more, following instabilities, if the run wants it."""
    if settings.stability != SUSPECT:
        return []
    limit = _small_gap_hartree(settings)
    return [
        row
        for row in unit.rows
        if row.stable < 0
        and row.place not in unit.before
        and (row.suspect or (row.status == CONVERGED and row.gap < limit))
    ]


def _small_gap_hartree(settings: RunSettings) -> float:
    """Below it the SCF of this level starts more than once; 0 for never."""
    from pyscf_ipu.scf.lowest.starts import small_gap
    from pyscf_ipu.xc.registry import functional

    return small_gap(functional(settings.level.xc).exchange)
