"""The noise of the grid: what energy and forces of a row change when its molecule is turned.

A grid's spheres keep their directions, so a molecule has another energy in every orientation.
PySCF computes a row in two more of them, in float64: what differs is the grid's, not rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from pyscf_ipu.base.units import FORCE_TO_MEV_PER_ANGSTROM, HARTREE_TO_EV
from qm1b.reference.recompute import Reference
from qm1b.rows.schema import Conformer

ROTATIONS = Rotation.from_rotvec([[0.9, -0.3, 0.6], [-0.5, 2.0, 1.0]]).as_matrix()
"""[2, 3, 3] Two orientations beside that of the row: anyhow, but always the same."""


@dataclass(frozen=True)
class Turned:
    """The spread of a row over three orientations: the largest minus the smallest value."""

    line: int
    conformer: int
    energy_mev: float
    force_mev_angstrom: float | None
    """Of the component of an atom where it is largest, turned back; None without forces."""


def orientations(conformer: Conformer) -> list[Conformer]:
    """The conformer in the other orientations, turned about the mean position."""
    centre = conformer.positions.mean(axis=0)
    inside = conformer.positions - centre
    return [replace(conformer, positions=inside @ turn.T + centre) for turn in ROTATIONS]


def spread(conformer: Conformer, references: Sequence[Reference]) -> Turned | None:
    """What PySCF gives for a row and its `orientations` differs by; None unless all converged."""
    if not all(one.converged for one in references):
        return None
    turns = zip(references, (np.eye(3), *ROTATIONS), strict=True)
    back = [np.array(one.forces) @ turn for one, turn in turns if one.forces is not None]
    apart = float(np.ptp(back, axis=0).max()) if back else 0.0
    return Turned(
        line=conformer.line,
        conformer=conformer.conformer,
        energy_mev=1e3 * HARTREE_TO_EV * float(np.ptp([one.energy for one in references])),
        force_mev_angstrom=FORCE_TO_MEV_PER_ANGSTROM * apart if back else None,
    )
