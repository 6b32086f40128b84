"""Rows whose SCF may have found another state than the lowest: flagged, not left out.

Conformers of one molecule differ by tens of millihartree; another electronic state lies farther
off. So does a geometry that RDKit got wrong, which is as well worth a look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from .schema import CONVERGED, Row

OUTLIER = "energy_outlier"
FEWEST = 4  # converged conformers of a molecule, below which nothing stands out
LEAST_HARTREE = 0.04
SPREADS = 8.0  # median absolute deviations


def flagged(rows: Sequence[Row]) -> list[Row]:
    """The rows of whole molecules, sorted by line, with `Result.suspect` set.

    A converged conformer is an outlier if its energy lies above the median of its molecule by more
    than SPREADS median absolute deviations, and by more than LEAST_HARTREE.
    """
    found: list[Row] = []
    for _, group in groupby(rows, key=lambda row: row.conformer.line):
        molecule = list(group)
        converged = [r.result.energy for r in molecule if r.result.status == CONVERGED]
        limit = _limit(converged) if len(converged) >= FEWEST else np.inf
        found += [_flag(row, limit) for row in molecule]
    return found


def _limit(energies: list[float]) -> float:
    """Hartree above which an energy stands out."""
    median = float(np.median(energies))
    spread = float(np.median(np.abs(np.array(energies) - median)))
    return median + max(LEAST_HARTREE, SPREADS * spread)


def _flag(row: Row, limit: float) -> Row:
    if row.result.status != CONVERGED or row.result.energy <= limit:
        return row
    return replace(row, result=replace(row.result, suspect=OUTLIER))
