"""Normal modes beside the motions of the whole molecule: which is which, and in which direction.

Shape letters: A atoms, B = 3 A coordinates and modes, M motions of the whole.
"""

from typing import Literal

import numpy as np
from ase import Atoms
from jaxtyping import Complex, Float

TRANSLATIONS = 3
RIGID = 1e-3
"""A rotation that moves the atoms by less than this part of the largest one does not count."""


def rigid_motions(atoms: Atoms) -> Float[np.ndarray, "M B"]:
    """Translations and rotations: M orthonormal vectors of B = 3 A mass-weighted coordinates.

    M is 6; 5 for linear molecules, 3 for atoms.
    """
    weights = np.sqrt(atoms.get_masses())[:, None]
    centred = atoms.positions - atoms.get_center_of_mass()
    axes = np.eye(3)
    motions = [weights * axis for axis in axes]
    motions += [weights * np.cross(axis, centred) for axis in axes]
    flat = np.array([motion.ravel() for motion in motions])
    _, turned, rotations = np.linalg.svd(flat[3:], full_matrices=False)
    kept = rotations[turned > RIGID * max(turned.max(), 1e-9)] if turned.max() > 1e-9 else []
    translations = flat[:3] / np.linalg.norm(flat[:3], axis=1, keepdims=True)
    return np.array([*translations, *kept])


def rotor(n_rigid: int) -> Literal["monatomic", "linear", "nonlinear"]:
    """ASE's word for a molecule with that many translations and rotations."""
    if n_rigid == TRANSLATIONS:
        return "monatomic"
    return "linear" if n_rigid == TRANSLATIONS + 2 else "nonlinear"


def likeness(
    modes: Float[np.ndarray, "B B"], rigid: Float[np.ndarray, "M B"]
) -> Float[np.ndarray, " B"]:
    """The part of each mode (rows, mass-weighted) that moves the molecule as a whole, 0 to 1."""
    return np.sum((modes @ rigid.T) ** 2, axis=1)


def signed(energies: Complex[np.ndarray, " B"]) -> Float[np.ndarray, " B"]:
    """Energies of modes as real numbers, imaginary ones as negative ones."""
    imaginary = np.imag(energies)
    return np.where(imaginary != 0, -np.abs(imaginary), np.real(energies))


def displacements(modes: Float[np.ndarray, "M B"], atoms: Atoms) -> Float[np.ndarray, "M A 3"]:
    """Mass-weighted modes (rows) as displacements of the atoms, each of length 1."""
    moved = modes.reshape(len(modes), -1, 3) / np.sqrt(atoms.get_masses())[:, None]
    return moved / np.linalg.norm(moved, axis=(1, 2), keepdims=True)
