"""Gaussian's kind of grid against its published radii, against integrals, and against PySCF."""

from dataclasses import replace

import numpy as np
import pytest
from oracle import WATER
from scipy.spatial.transform import Rotation

import pyscf_ipu as pi
from pyscf_ipu.elements.gaussian_grid import radial_points, standard_axes, valence_radius

# Table 1 of P. M. W. Gill, B. G. Johnson, J. A. Pople, doi:10.1016/0009-2614(93)80125-9.
PUBLISHED = {
    1: 1.0000, 2: 0.5882, 3: 3.0769, 4: 2.0513, 5: 1.5385, 6: 1.2308, 7: 1.0256, 8: 0.8791,
    9: 0.7692, 10: 0.6838, 11: 4.0909, 12: 3.1579, 13: 2.5714, 14: 2.1687, 15: 1.8750, 16: 1.6514,
    17: 1.4754, 18: 1.3333,
}  # fmt: skip
LEVEL = pi.Settings(
    grid_level=(20, 50), prune=False, grid_kind="gaussian", precision="float64", xc="pbe"
)
METHANE = np.array([[0, 0, 0], [1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], float)
AMMONIA = np.array(
    [
        [0, 0, 0.3],
        *(Rotation.from_euler("z", 2.1 + k * 2 * np.pi / 3).apply([2, 0, -0.4]) for k in range(3)),
    ]
)
SHAPES = {
    "asymmetric": (
        [8, 6, 1, 1],
        np.array([[0, 0, 0], [2.3, 0.1, 0], [3, 1.7, 0.2], [3.1, -1.5, 0]]),
    ),
    "spherical": ([6, 1, 1, 1, 1], 1.2 * METHANE),
    "symmetric": ([7, 1, 1, 1], AMMONIA),
    "linear": ([6, 7, 1], np.array([[0, 0, 0], [0, 0, 2.2], [0, 0, -2]])),
    "atom": ([10], np.zeros((1, 3))),
}


def test_radii_are_the_published_ones():
    assert {z: round(valence_radius(z), 4) for z in PUBLISHED} == PUBLISHED
    assert valence_radius(35) == pytest.approx(3.7**2 / 7.6)  # bromine
    assert valence_radius(26) == pytest.approx(3.7**2 / 3.75)  # iron


@pytest.mark.parametrize("basis", ["sto-3g", "6-31g*"])
def test_heavier_elements_have_a_shape(basis):
    """Whose slots other elements may fill, too."""
    level = replace(LEVEL, basis=basis)
    for symbol in ("Br", "S"):
        found = pi.Molecule.from_symbols(["H", symbol], [[0, 0, 0], [0, 0, 1.4]], unit="angstrom")
        assert len(pi.Solver(level).shape(found).classes) == 2


@pytest.mark.parametrize("number", [0, 37])
def test_other_elements_are_refused(number):
    with pytest.raises(ValueError, match="from H to Kr"):
        valence_radius(number)


@pytest.mark.parametrize("number", [1, 6, 9, 17])
def test_radial_points_integrate_an_exponential(number):
    distance, weights = radial_points(number, 75)
    assert weights @ np.exp(-2 * distance) == pytest.approx(0.25, rel=1e-9)
    assert weights @ (np.exp(-((distance - 1) ** 2))) == pytest.approx(
        np.trapezoid(*(lambda r: (r**2 * np.exp(-((r - 1) ** 2)), r))(np.linspace(0, 12, 200_001))),
        rel=1e-6,
    )


@pytest.mark.parametrize("name", SHAPES)
def test_axes_turn_with_the_molecule(name):
    """Up to an exchange or reversal of axes, which no Lebedev sphere feels, and to symmetry."""
    numbers, place = SHAPES[name]
    numbers = np.array(numbers)
    own = place @ standard_axes(numbers, place)
    for seed in range(4):
        turn = Rotation.random(random_state=seed).as_matrix()
        order = np.random.default_rng(seed).permutation(len(numbers))
        moved = place[order] @ turn.T + np.array([1.0, -2, 3])
        axes = standard_axes(numbers[order], moved)
        back = np.argsort(order)
        same = standard_axes(numbers, moved[back])  # up to their signs
        np.testing.assert_allclose(np.abs(axes.T @ same), np.eye(3), atol=1e-9)
        np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-12)
        found = (moved - numbers[order] @ moved / numbers.sum()) @ axes
        at_home = own - numbers @ own / numbers.sum()
        # The distances of each charge from the three axes' planes, whichever atom has them.
        for ours, theirs in zip(
            np.sort(np.abs(found), axis=1), np.sort(np.abs(at_home[order]), axis=1), strict=True
        ):
            assert np.abs(np.sort(np.abs(at_home), axis=1) - ours).sum(1).min() < 1e-6, theirs


@pytest.mark.long
def test_energy_and_forces_are_those_of_pyscf_and_turn_with_the_molecule():
    solver = pi.Solver(LEVEL)
    found = pi.rks(WATER, solver=solver, forces=True)
    field = LEVEL.pyscf_method(LEVEL.pyscf_mole(WATER.numbers, WATER.positions))
    field.conv_tol = 1e-12
    assert float(found.energy) == pytest.approx(field.kernel(), abs=1e-10)
    gradient = field.nuc_grad_method()
    gradient.grid_response = True
    np.testing.assert_allclose(-np.asarray(found.forces), gradient.kernel(), atol=1e-7)
    turn = Rotation.random(random_state=5).as_matrix()
    turned = pi.rks(
        pi.Molecule(WATER.numbers, WATER.positions @ turn.T), solver=solver, forces=True
    )
    assert float(turned.energy) == pytest.approx(float(found.energy), abs=1e-11)
    np.testing.assert_allclose(turned.forces, found.forces @ turn.T, atol=1e-10)


def test_what_gaussian_does_not_publish_is_refused():
    for other in ({"grid_level": 3}, {"prune": True}):
        with pytest.raises(ValueError, match="Gaussian's levels and pruning are not published"):
            pi.Settings(
                **{"grid_level": (75, 302), "prune": False} | other, grid_kind="gaussian"
            ).check()
    with pytest.raises((ValueError, TypeError), match="gaussian"):
        pi.Settings(grid_kind="orca").check()  # type: ignore[arg-type]
