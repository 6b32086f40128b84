"""The in-line audit of `qm1b generate --audit`: PySCF recomputes a share of the rows at once.

The numbers of PySCF are stored in the row, beside the result. The run's seed and the row alone
decide which rows are audited. `qm1b.audit` checks a dataset afterwards.
"""

import traceback
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pyscf_ipu.settings import Settings
from qm1b.errors import OF_CALCULATION, is_of_no_molecule
from qm1b.reference.recompute import recompute
from qm1b.rows.identity import is_drawn
from qm1b.rows.schema import CONVERGED, Conformer, Row


def is_audited(conformer: Conformer, share: float, seed: int) -> bool:
    """Whether a row belongs to the share (0 to 1) of audited rows."""
    return is_drawn(share, "audit", seed, conformer=conformer)


def audited(rows: Sequence[Row], level: Settings, share: float, seed: int) -> tuple[Row, ...]:
    """The rows; those that are audited with PySCF's numbers.

    PySCF's numbers stay NaN if either calculation has not converged, and if PySCF raises, which
    `Row.troubles` says. An audit never changes the numbers of its row.
    """
    return tuple(
        _with_reference(row, level) if share and is_audited(row.conformer, share, seed) else row
        for row in rows
    )


def _with_reference(row: Row, level: Settings) -> Row:
    if row.status != CONVERGED:
        return row
    try:
        form = row.jk or level.form(row.n_ao)
        reference = recompute(row.conformer, level.with_form(form), forces=bool(row.forces))
    except (*OF_CALCULATION, ValueError) as error:  # SciPy's, of a matrix that is not finite
        if is_of_no_molecule(error):
            raise
        traceback.print_exc()  # into workers.log
        return _without(row, f"raised {type(error).__name__}")
    if not reference.converged:
        return _without(row, "did not converge")
    names = ("energy", "homo", "lumo", "dipole")
    row = replace(row, **{f"reference_{name}": getattr(reference, name) for name in names})
    if reference.forces is None:
        return row
    error = np.abs(np.subtract(row.forces, reference.forces)).max()
    return replace(row, reference_forces_error=float(error))


def _without(row: Row, why: str) -> Row:
    return replace(row, troubles=(*row.troubles, f"the audit {why}"))
