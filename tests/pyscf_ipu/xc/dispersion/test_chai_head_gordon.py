"""Chai and Head-Gordon's correction, against Q-Chem's published energy and differences."""

import numpy as np
import pytest
from oracle import TWO_WATERS

from pyscf_ipu.xc.dispersion.chai_head_gordon import ATOMS, chai_head_gordon


def energy(numbers, positions):
    return chai_head_gordon(numbers, positions, s6=1.0, a=6.0)[0]


def test_the_interaction_of_two_waters_is_that_of_q_chem():
    """Q-Chem gives -0.0146246032 Hartree at wB97X-D/6-31G (Psi4's test_dft_benchmarks.py).

    PySCF 2.14 gives -0.0138566286 without dispersion (libxc 471, 200 x 590 points); at wB97X, where
    there is none, it is 1.1e-6 below Q-Chem.
    """
    numbers, positions = TWO_WATERS.numbers, TWO_WATERS.positions
    whole, *parts = (
        energy(numbers[part], positions[part]) for part in (slice(None), slice(3), slice(3, None))
    )
    found = whole - sum(parts)
    assert found == pytest.approx(-0.0146246032 + 0.0138566286 - 1.06e-6, abs=1e-7)


def test_the_gradient_is_the_derivative():
    rng = np.random.default_rng(3)
    numbers = np.array([6, 17, 1, 7, 35, 16])
    positions = rng.normal(size=(6, 3)) * 3.0
    _, gradient = chai_head_gordon(numbers, positions, s6=1.0, a=6.0)
    step = 1e-4
    for atom, axis in np.ndindex(6, 3):
        moved = np.zeros((6, 3))
        moved[atom, axis] = step
        rise = energy(numbers, positions + moved) - energy(numbers, positions - moved)
        assert rise / (2 * step) == pytest.approx(gradient[atom, axis], rel=1e-6, abs=1e-11)
    np.testing.assert_allclose(gradient.sum(0), 0.0, atol=1e-15)


def test_far_apart_it_is_c6_over_r6_and_close_by_it_vanishes():
    two = np.array([18, 18])
    far = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 60.0]])
    c6 = 4.61 * 17.3453  # Hartree Bohr^6 in one J nm^6/mol, to six digits
    assert energy(two, far) == pytest.approx(-c6 / 60.0**6, rel=1e-5)
    assert abs(energy(two, far / 600)) < 1e-9
    assert np.isfinite(energy(two, np.zeros((2, 3))))


def test_elements():
    assert set(ATOMS) == {*range(1, 55)}
    with pytest.raises(ValueError, match="atomic number 55, only for H to Xe"):
        energy(np.array([55, 1]), np.eye(3)[:2])
