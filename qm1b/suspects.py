"""Rows whose SCF may have found another state than the lowest: flagged, not left out.

Conformers of one molecule differ by tenths of an eV; another electronic state lies farther off. So
does a geometry that RDKit got wrong, which is as well worth a look.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pyscf_ipu.units import HARTREE_TO_EV

from .molecules import name_of
from .schema import CONVERGED, Row

OUTLIER = "energy_outlier"
FEWEST = 3  # converged conformers of a molecule, below which nothing stands out
OUTLIER_EV = 1.0
OUTLIER_SIGMAS = 5.0


def outliers(energy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which conformers of one molecule are far from the others in energy.

    Far is more than OUTLIER_EV and more than OUTLIER_SIGMAS times the spread, which is estimated by
    the median absolute deviation: a few wrong rows do not widen it.

    Args:
        energy: [R] Hartree, of converged conformers.

    Returns:
        [R] bool, and [R] the distances from the median in eV.
    """
    deviation = (energy - np.median(energy)) * HARTREE_TO_EV if len(energy) else energy
    if len(energy) < FEWEST:
        return np.zeros(len(energy), bool), deviation
    sigma = 1.4826 * np.median(np.abs(deviation))
    return np.abs(deviation) > max(OUTLIER_EV, OUTLIER_SIGMAS * float(sigma)), deviation


def flagged(rows: Sequence[Row]) -> list[Row]:
    """The rows of a unit, in their order, with `Result.suspect` set.

    Conformers of one molecule may be of several lines: entries or frames with geometries.
    """
    found = list(rows)
    molecules = defaultdict[tuple[str, int], list[int]](list)
    for i, row in enumerate(rows):
        if row.result.status == CONVERGED:
            who = row.conformer
            molecules[name_of(who.smiles, who.seed), who.charge].append(i)
    for good in molecules.values():
        far, _ = outliers(np.array([rows[i].result.energy for i in good]))
        for i in np.array(good, int)[far].tolist():
            result = replace(rows[i].result, suspect=OUTLIER)
            found[i] = replace(rows[i], result=result)
    return found
