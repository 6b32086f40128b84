"""Rows whose SCF may have found a state above the lowest: they are flagged, not left out.

Conformers of one molecule differ by tenths of an eV; other electronic states differ by more. So do
geometries that RDKit got wrong, which are worth a look as well.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pyscf_ipu.units import HARTREE_TO_EV
from qm1b.rows.identity import name_of
from qm1b.rows.schema import CONVERGED, Row

OUTLIER = "energy_outlier"
FEWEST = 3
"""Converged conformers of a molecule that it takes to find an outlier."""
OUTLIER_EV = 1.0
OUTLIER_SIGMAS = 5.0


def outliers(energy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which conformers of one molecule are far from the others in energy.

    Far means more than OUTLIER_EV and more than OUTLIER_SIGMAS times the spread. The spread is
    estimated by the median absolute deviation, which a few wrong rows do not widen.

    Args:
        energy: [R] Energies of converged conformers in Hartree.

    Returns:
        [R] Which ones are far, and [R] the distances from the median in eV.
    """
    deviation = (energy - np.median(energy)) * HARTREE_TO_EV if len(energy) else energy
    if len(energy) < FEWEST:
        return np.zeros(len(energy), bool), deviation
    sigma = 1.4826 * np.median(np.abs(deviation))
    return np.abs(deviation) > max(OUTLIER_EV, OUTLIER_SIGMAS * float(sigma)), deviation


def flagged(rows: Sequence[Row]) -> list[Row]:
    """The rows of a unit, in their order, with `Result.suspect` set.

    The conformers of one molecule may come from several lines: entries or frames with geometries.
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
            found[i] = replace(rows[i], result=replace(rows[i].result, suspect=OUTLIER))
    return found
