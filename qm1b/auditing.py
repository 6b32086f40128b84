"""The in-line audit: a part of all rows computed again by PySCF in float64, as they are made.

Which rows depends on the run's seed and the row alone; so does what is found. The reference stands
in the row, beside the result.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Sequence
from dataclasses import replace

from .presets import Level
from .schema import CONVERGED, Conformer, Result


def is_audited(conformer: Conformer, share: float, seed: int) -> bool:
    """Whether a row is among the part `share` (0 to 1) that is audited."""
    text = f"audit {seed} {conformer.line} {conformer.conformer}"
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def audited(
    conformers: Sequence[Conformer],
    results: Sequence[Result],
    level: Level,
    share: float,
    seed: int,
) -> tuple[Result, ...]:
    """The results, those of chosen conformers with PySCF's numbers.

    NaN stays where we have not converged or PySCF has not, and where PySCF raises: an audit never
    changes the row that it is of.
    """
    if not share:
        return tuple(results)
    return tuple(
        _with_reference(c, r, level) if is_audited(c, share, seed) else r
        for c, r in zip(conformers, results, strict=True)
    )


def _with_reference(conformer: Conformer, result: Result, level: Level) -> Result:
    from .reference import reference

    if result.status != CONVERGED:
        return result
    try:
        found = reference(conformer, level)
    except Exception:
        traceback.print_exc()  # into workers.log
        return result
    if not found.converged:
        return result
    return replace(
        result,
        reference_energy=found.energy,
        reference_homo=found.homo,
        reference_lumo=found.lumo,
        reference_dipole=found.dipole,
    )
