"""The noise of the grid: what energy and forces of a row change when its molecule is turned.

A grid's spheres keep their directions, so a molecule has another energy in every orientation.
PySCF computes a row in two more of them, in float64: what differs is the grid's, not rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from pyscf_ipu.base.units import FORCE_TO_MEV_PER_ANGSTROM, HARTREE_TO_EV
from qm1b.reference.recompute import Reference
from qm1b.rows.schema import Conformer

Rotation = Float[np.ndarray, "3 3"]


def _rotation(axis: Sequence[float], angle: float) -> Rotation:
    """The rotation about an axis by an angle in radians, by Rodrigues' formula."""
    x, y, z = np.array(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


ROTATIONS: tuple[Rotation, ...] = (
    _rotation((3.0, -1.0, 2.0), 1.1),
    _rotation((-1.0, 4.0, 2.0), 2.3),
)
"""Two orientations beside that of the row: anyhow, but always the same."""


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
    """What a row's energy and forces differ by; None unless PySCF converged in every orientation.

    Args:
        conformer: as it is in the row.
        references: PySCF's numbers for it, and for its `orientations`.
    """
    if not all(one.converged for one in references):
        return None
    energies = [one.energy for one in references]
    turns = (np.eye(3), *ROTATIONS)
    back = [
        np.array(one.forces) @ turn
        for one, turn in zip(references, turns, strict=True)
        if one.forces is not None
    ]
    apart = np.ptp(back, axis=0).max() * FORCE_TO_MEV_PER_ANGSTROM if back else None
    return Turned(
        line=conformer.line,
        conformer=conformer.conformer,
        energy_mev=1e3 * HARTREE_TO_EV * float(np.ptp(energies)),
        force_mev_angstrom=None if apart is None else float(apart),
    )
