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
from qm1b.rows.schema import CONVERGED, Conformer, Result


def is_audited(conformer: Conformer, share: float, seed: int) -> bool:
    """Whether a row belongs to the share (0 to 1) of audited rows."""
    return is_drawn(share, "audit", seed, conformer=conformer)


def audited(
    conformers: Sequence[Conformer],
    results: Sequence[Result],
    level: Settings,
    share: float,
    seed: int,
) -> tuple[Result, ...]:
    """The results; those of audited conformers with PySCF's numbers.

    PySCF's numbers stay NaN if either calculation has not converged, and if PySCF raises, which
    `Result.troubles` says. An audit never changes the numbers of its row.
    """
    if not share:
        return tuple(results)
    return tuple(
        _with_reference(c, r, level) if is_audited(c, share, seed) else r
        for c, r in zip(conformers, results, strict=True)
    )


def _with_reference(conformer: Conformer, result: Result, level: Settings) -> Result:
    if result.status != CONVERGED:
        return result
    try:
        form = result.jk or level.form(result.n_ao)
        reference = recompute(conformer, level.with_form(form), forces=bool(result.forces))
    except (*OF_CALCULATION, ValueError) as error:  # SciPy's, of a matrix that is not finite
        if is_of_no_molecule(error):
            raise
        traceback.print_exc()  # into workers.log
        return _without(result, f"raised {type(error).__name__}")
    if not reference.converged:
        return _without(result, "did not converge")
    names = ("energy", "homo", "lumo", "dipole")
    result = replace(result, **{f"reference_{name}": getattr(reference, name) for name in names})
    if reference.forces is None:
        return result
    error = np.abs(np.subtract(result.forces, reference.forces)).max()
    return replace(result, reference_forces_error=float(error))


def _without(result: Result, why: str) -> Result:
    return replace(result, troubles=(*result.troubles, f"the audit {why}"))
