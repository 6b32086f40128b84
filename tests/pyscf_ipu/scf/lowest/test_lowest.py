"""The way down from a saddle, on two sites that attract electrons."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_sites import (
    ATTRACTION,
    HOPPING,
    OWN_ENERGY,
    SHARED_ENERGY,
    exactly,
    fock_of,
    hopping_between_two,
)

from pyscf_ipu.numerics.precision import PRECISIONS
from pyscf_ipu.scf.lowest.lowest import lowest_scf
from pyscf_ipu.scf.lowest.starts import Start
from pyscf_ipu.scf.orbitals import orthonormal
from pyscf_ipu.scf.run import Cycling

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


class Sites(NamedTuple):
    """Two sites, as a problem whose instabilities can be followed."""

    hopping: jax.Array
    repulsion: float

    @property
    def overlap(self):
        return exactly(jnp.eye(2))

    @property
    def padded(self):
        return jnp.zeros(2, bool)

    @property
    def cycled(self):
        return self.fock

    def fock(self, density):
        return fock_of(hopping_between_two(self.hopping), self.repulsion)(density)

    def response(self, density):
        return lambda change: self.repulsion * jnp.diag(jnp.diag(change))


@functools.partial(jax.jit, static_argnames=("repulsion", "small_gap", "max_cycles"))
def lowest_of(hopping=HOPPING, repulsion=ATTRACTION, small_gap=0.0, max_cycles=60):
    """From one electron on each site, which is self-consistent."""
    problem = Sites(hopping, repulsion)
    start = Start(jnp.eye(2), jnp.int32(1), cycling=Cycling(small_gap=small_gap))
    basis = orthonormal(problem.overlap)
    return lowest_scf(problem, basis, start, max_cycles, PRECISIONS["float64"])


def energy_of(found):
    return float(found.run.terms.total().hi)


def test_a_saddle_is_left():
    found = lowest_of()
    assert energy_of(found) == pytest.approx(OWN_ENERGY, abs=1e-6)
    assert bool(found.run.converged)
    assert bool(found.stable)
    assert int(found.followed) == 1


def test_another_start_that_leads_to_the_minimum_leaves_nothing_to_follow():
    found = lowest_of(small_gap=0.25)
    assert energy_of(found) == pytest.approx(OWN_ENERGY, abs=1e-6)
    assert bool(found.stable)
    assert int(found.followed) == 0


def test_a_minimum_is_kept():
    """Sites that repel electrons share them."""
    found = lowest_of(repulsion=-ATTRACTION)
    np.testing.assert_allclose(found.run.density, [[1.0, 1.0], [1.0, 1.0]], atol=1e-6)
    assert bool(found.stable)
    assert int(found.followed) == 0


def test_rows_of_a_batch_are_followed_one_by_one():
    """With a hopping of 0.6 the shared state is the minimum."""
    rows = jax.vmap(lowest_of)(jnp.asarray([0.6, HOPPING]))
    energies = np.asarray(rows.run.terms.total().hi)
    np.testing.assert_allclose(energies, [SHARED_ENERGY - 1.0, OWN_ENERGY], atol=1e-6)
    np.testing.assert_array_equal(rows.followed, [0, 1])
    assert rows.stable.all()


def test_what_has_not_converged_is_not_called_stable():
    found = lowest_of(max_cycles=1)
    assert not bool(found.run.converged)
    assert not bool(found.stable)
