"""Motions of the whole molecule, and what is like them."""

import numpy as np
import pytest
from ase import Atoms

from pyscf_ipu.api.normal_modes import (
    displacements,
    likeness,
    rigid_motions,
    rotor,
    signed,
)


@pytest.mark.parametrize(
    ("atoms", "count"),
    [
        (Atoms("H2O", [[0, 0, 0.1], [0, 0.76, -0.47], [0, -0.76, -0.47]]), 6),
        (Atoms("OCO", np.outer([-1.16, 0, 1.16], [0.36, 0.48, 0.8])), 5),
        (Atoms("He"), 3),
    ],
)
def test_rigid_motions(atoms, count):
    rigid = rigid_motions(atoms)
    assert rigid.shape == (count, 3 * len(atoms))
    assert rotor(count) == {3: "monatomic", 5: "linear", 6: "nonlinear"}[count]
    np.testing.assert_allclose(rigid @ rigid.T, np.eye(count), atol=1e-12)
    everything = np.linalg.qr(np.vstack([rigid, np.eye(3 * len(atoms))]).T)[0].T
    alike = likeness(everything, rigid)
    expected = [1] * count + [0] * (len(alike) - count)
    np.testing.assert_allclose(np.sort(alike)[::-1], expected, atol=1e-12)
    moved = displacements(rigid, atoms)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=(1, 2)), 1)
    np.testing.assert_allclose(np.ptp(moved[:3], axis=1), 0, atol=1e-12)  # all atoms alike


def test_imaginary_energies_are_negative_numbers():
    np.testing.assert_array_equal(signed(np.array([2 + 0j, 3j])), [2, -3])
