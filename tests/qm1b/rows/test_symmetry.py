"""Symmetries that a dipole must share."""

import numpy as np
import pytest

from qm1b.rows.symmetry import mirrorings

WATER = [8, 1, 1], [[0, 0, 0.1], [0, 1.4, -0.9], [0, -1.4, -0.9]]
HYDROGEN_FLUORIDE = [9, 1], [[0, 0, 0], [0, 0, 1.7]]
NITROGEN = [7, 7], [[0, 0, -1], [0, 0, 1]]
ETHYLENE = (
    [6, 6, 1, 1, 1, 1],
    [[0, 0, 1.26], [0, 0, -1.26], *([0, y, z] for y in (1.75, -1.75) for z in (2.3, -2.3))],
)
CHIRAL = [6, 1, 9, 17, 7], [[0, 0, 0], [2, 0.1, 0], [-0.7, 2.5, 0], [-0.6, -1.1, 3.1], [-1, -1, -2]]


def turned(positions):
    """Turned about an odd axis and moved, as any geometry from a file."""
    q, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))
    return np.array(positions, float) @ q.T + [0.3, -2.0, 7.0]


@pytest.mark.parametrize(
    ("molecule", "count", "free"),
    [(WATER, 3, 1), (HYDROGEN_FLUORIDE, 3, 1), (NITROGEN, 7, 0), (ETHYLENE, 7, 0), (CHIRAL, 0, 3)],
    ids=["water", "HF", "N2", "ethylene", "chiral"],
)
def test_how_many_and_what_they_leave_of_a_dipole(molecule, count, free):
    numbers, positions = np.array(molecule[0], np.uint8), turned(molecule[1])
    found = list(mirrorings(numbers, positions))
    assert len(found) == count
    about = positions - np.average(positions, axis=0, weights=numbers)
    for matrix in found:
        image = about @ matrix.T
        gap = np.abs(image[:, None] - about[None]).max(-1).min(1)
        np.testing.assert_allclose(gap, 0, atol=1e-9)
    projector = np.mean([np.eye(3), *found], axis=0)
    assert round(np.trace(projector)) == free


def test_an_atom_out_of_place_breaks_it():
    numbers, positions = np.array(WATER[0], np.uint8), np.array(WATER[1])
    positions[1, 0] += 0.1
    assert len(list(mirrorings(numbers, positions))) == 1  # three atoms always lie in a plane


def test_single_atoms_and_very_many_are_not_looked_at():
    assert list(mirrorings(np.array([2], np.uint8), np.zeros((1, 3)))) == []
    many = np.ones(65, np.uint8), np.arange(195.0).reshape(65, 3)
    assert list(mirrorings(*many)) == []
