"""Derivatives of the fitted energy: against differences of it, and native against portable."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fitted_cases import OMEGA, PORTABLE, case, in_float64
from oracle import NATIVE, native_and_portable

from pyscf_ipu.fitting.operators import operators
from pyscf_ipu.fitting.repulsion import Fitted
from pyscf_ipu.fitting.three_index import auxiliary_of, pair_kets
from pyscf_ipu.gradient.fitted_repulsion import _contracted, fitted_gradient
from pyscf_ipu.gradient.pairs import by_nuclei
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.integrals.supermatrix import pack_density
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.numerics.two_words import Pair

pytestmark = pytest.mark.slow

EXCHANGE = Interaction(0.2, 0.6, OMEGA)
STEP = 1e-3


def test_derivatives_are_those_of_the_energy():
    """At a fixed density, along a random direction of all nuclei."""
    which = case("sto-3g")
    n, order = which.shape.n_ao, which.order
    rng = np.random.default_rng(6)
    columns = np.zeros((n, 4))
    columns[order] = 0.5 * rng.normal(size=(len(order), 4))
    density = columns @ columns.T

    def moved(tabulated, conf, by):
        positions = Pair(conf.positions.hi + by, conf.positions.lo)
        return which.atoms(tabulated, conf._replace(positions=positions))

    def energy(tabulated, conf, by, density):
        atoms = moved(tabulated, conf, by)
        auxiliary = auxiliary_of(atoms, which.layout)
        found = operators(which.plan, pair_strips(atoms), auxiliary, EXCHANGE, 0.0 * density)
        return Fitted(0.0 * density, found).repulsion(pack_density(density))[1].value()

    def gradient(tabulated, conf, by, density):
        atoms = moved(tabulated, conf, by)
        two, on_auxiliary = fitted_gradient(atoms, which.layout, density, EXCHANGE)
        by_strips = [
            strips._replace(
                centre=Pair(g.centre, g.centre),
                hermite=g.hermite,
                kinetic=0.0 * strips.kinetic,
            )
            for strips, g in zip(pair_strips(atoms), two, strict=True)
        ]
        return by_nuclei(atoms, by_strips) + on_auxiliary

    direction = rng.normal(size=(which.shape.n_atoms, 3))
    steps = {k: (*which.arrays, k * STEP * direction, density) for k in (-2, -1, 0, 1, 2)}
    at = {k: in_float64(energy, *steps[k]) for k in (-2, -1, 1, 2)}
    difference = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * STEP)
    found = in_float64(gradient, *steps[0])
    assert abs(difference) > 0.1
    assert np.sum(found * direction) == pytest.approx(difference, abs=1e-7)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-10)


@NATIVE
@pytest.mark.parametrize("mol", PORTABLE)
def test_native_and_portable(mol):
    which = case("6-31g", strip=20, mol=mol)
    shape = which.plan.n_rows, which.layout.n_functions
    weights = np.random.default_rng(7).normal(size=shape)

    def contracted(tabulated, conf, weights):
        atoms = which.atoms(tabulated, conf)
        kets = pair_kets(which.plan, pair_strips(atoms))
        found, on_bras = _contracted(kets, auxiliary_of(atoms, which.layout), weights, EXCHANGE)
        # Of primitives with hardly any charge nothing is computed, and nothing is needed.
        charged = [(jnp.abs(k.side.hermite).sum((-1, -2)) > 1e-13).astype(float) for k in kets]
        parts = [
            (g.centre * there[..., None], g.hermite * there[..., None, None])
            for g, there in zip(found, charged, strict=True)
        ]
        return parts, [x.sum(2) for x in on_bras]

    with jax.enable_x64(True):
        native, portable, names = native_and_portable(contracted, *which.arrays, weights)
    assert names.count("fitting_gradient") == 1
    for a, b in zip(native, portable, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * max(1.0, np.abs(b).max()))
