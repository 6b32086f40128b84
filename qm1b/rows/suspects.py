"""Rows whose SCF may have found a state above the lowest: they are flagged, not left out.

A row is judged by itself first: by its stability, if that was looked at, by its gap, by its <S^2>,
and by its dipole, which must have the symmetry of the nuclei.  Then it is compared with its mates
that passed.  Conformers of one molecule differ by tenths of an eV; other electronic states differ
by more.  So do geometries that RDKit got wrong, which are worth a look as well.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from pyscf_ipu.base.units import HARTREE_TO_EV
from qm1b.rows.identity import name_of
from qm1b.rows.schema import CONVERGED, Conformer, Row
from qm1b.rows.symmetry import mirrorings

OUTLIER = "energy_outlier"
ASYMMETRIC = "dipole_symmetry"
NO_GAP = "no_gap"
UNSTABLE = "unstable"
CONTAMINATED = "spin_contamination"
FEWEST = 3
"""Converged conformers of a molecule that it takes to find an outlier."""
OUTLIER_EV = 1.0
OUTLIER_SIGMAS = 5.0
DIPOLE_E_BOHR = 0.1
"""By which a dipole may break a symmetry of the nuclei; another state breaks it by 1 and more."""
CONTAMINATION = 0.1
"""By which <S^2> may exceed S (S + 1): then other spins are mixed into the state."""
GAP_HARTREE = 1e-3
"""With a smaller gap, which orbital is occupied is an accident."""


def by_itself(row: Row) -> str:
    """Why a converged row is suspect without a look at others; "" if it is not."""
    who = row.conformer
    if row.stable == 0:
        return UNSTABLE
    if row.gap < GAP_HARTREE:
        return NO_GAP
    spin = (who.multiplicity - 1) / 2
    if row.s_squared - spin * (spin + 1) > CONTAMINATION:
        return CONTAMINATED
    centre = who.positions.mean(axis=0) if len(who.positions) else np.zeros(3)
    dipole = np.array(row.dipole) - who.charge * centre
    for matrix in mirrorings(who.numbers, who.positions):
        if np.abs(matrix @ dipole - dipole).max() > DIPOLE_E_BOHR:
            return ASYMMETRIC
    return ""


def outliers(
    energy: Float[np.ndarray, " R"], sound: Bool[np.ndarray, " R"] | None = None
) -> tuple[Bool[np.ndarray, " R"], Float[np.ndarray, " R"]]:
    """Which conformers of one molecule are far from the others in energy.

    Far means more than OUTLIER_EV and more than OUTLIER_SIGMAS times the spread. The spread is
    estimated by the median absolute deviation, which a few wrong rows do not widen.

    Args:
        energy: [R] Energies of converged conformers in Hartree.
        sound: [R] Those that median and spread are taken of; default all.

    Returns:
        [R] Which ones are far, and [R] the distances from the median in eV.
    """
    sound = np.ones(len(energy), bool) if sound is None or not sound.any() else sound
    if not len(energy):
        return np.zeros(0, bool), energy
    deviation = (energy - np.median(energy[sound])) * HARTREE_TO_EV
    if sound.sum() < FEWEST:
        return np.zeros(len(energy), bool), deviation
    sigma = 1.4826 * np.median(np.abs(deviation[sound]))
    return np.abs(deviation) > max(OUTLIER_EV, OUTLIER_SIGMAS * float(sigma)), deviation


def flagged(rows: Sequence[Row]) -> list[Row]:
    """The rows of a unit, in their order, with `Row.suspect` set.

    The conformers of one molecule may come from several lines: entries or frames with geometries.
    """
    suspect = [""] * len(rows)
    molecules = defaultdict[tuple[str, int, int], list[int]](list)
    for i, row in enumerate(rows):
        if row.status == CONVERGED:
            molecules[_molecule(row.conformer)].append(i)
    for good in molecules.values():
        alone = [by_itself(rows[i]) for i in good]
        sound = np.array([not reason for reason in alone])
        far, _ = outliers(np.array([rows[i].energy for i in good]), sound)
        for i, reason, is_far in zip(good, alone, far.tolist(), strict=True):
            suspect[i] = reason or (OUTLIER if is_far else "")
    return [
        row if row.suspect == why else replace(row, suspect=why)
        for row, why in zip(rows, suspect, strict=True)
    ]


def _molecule(who: Conformer) -> tuple[str, int, int]:
    return name_of(who.smiles, who.seed), who.charge, who.multiplicity
