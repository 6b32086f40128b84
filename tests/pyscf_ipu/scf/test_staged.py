"""An SCF whose costly part is mostly coarse: the same end, and few evaluations of that part."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.grid.xc_matrix import PORTABLE
from pyscf_ipu.kohn_sham.nearby import Touched
from pyscf_ipu.numerics.columns import columns_of_density
from pyscf_ipu.numerics.precision import PRECISIONS
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.scf.diis import diis_start, diis_step, renewed
from pyscf_ipu.scf.lowest.starts import Start, scf
from pyscf_ipu.scf.orbitals import commutator_of, orthonormal
from pyscf_ipu.scf.staged import Nearby, Staged

N, OCCUPIED, REPULSION = 6, 2, 1.0
FLOAT64 = PRECISIONS["float64"]
OVERLAP = np.eye(N) + 0.15 * (np.eye(N, k=1) + np.eye(N, k=-1))


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


class Parts(NamedTuple):
    core: Pair
    costly: Pair

    def total(self):
        return Pair(self.core.hi + self.costly.hi, self.core.lo + self.costly.lo)


def one_word(x):
    return Pair(x, jnp.zeros_like(x))


def staged(counted, slope, offset, how):
    """A chain with F = h + U diag(D); what stands for U diag(D) is `slope` times it, displaced."""
    rng = np.random.default_rng(8)
    core = jnp.asarray(np.diag(rng.normal(size=N)) - 0.8 * (np.eye(N, k=1) + np.eye(N, k=-1)))
    wrong = jnp.asarray(offset * rng.normal(size=N))

    def common(density, in_float32=None):
        noise = 0.0 if in_float32 is None else jnp.where(in_float32, 1e-5, 0.0)
        zero = jnp.zeros(())
        return core + noise, Parts(one_word(jnp.sum(density * core)), Pair(zero, zero))

    def costly(density, nearby):
        used = jnp.zeros((), bool) if nearby is None else nearby.used
        jax.debug.callback(lambda used: counted.append(bool(used)), used, ordered=True)
        own = jnp.diag(density)
        energy, matrix = 0.5 * REPULSION * jnp.sum(own * own), REPULSION * jnp.diag(own)
        if nearby is not None:
            columns = columns_of_density(density)
            product = jnp.where(used, matrix @ columns.vectors[:, :N], matrix)
            matrix = Touched(PORTABLE, columns, nearby).completed(product, jnp.asarray(OVERLAP))
        return one_word(energy), matrix

    def coarse(density):
        own = jnp.diag(density)
        energy = 0.5 * slope * REPULSION * jnp.sum(own * own) + jnp.sum(wrong * own)
        return one_word(energy), slope * REPULSION * jnp.diag(own) + jnp.diag(wrong)

    def joined(terms, energy):
        return terms._replace(costly=energy)

    return Staged(
        common, costly, coarse, joined, in_part=how == "in part", has_rough="rough" in how
    )


@functools.cache
def solve(how, slope=1.05, offset=0.1):
    """(run, which evaluations of the costly part were in part), on two grids, one, or plainly."""
    counted = []
    fock = staged(counted, slope, offset, how=how)
    start = Start(jnp.zeros((N, N)), jnp.int32(OCCUPIED), full_grid="full grid" in how)
    field = fock.__call__ if how == "plain" else fock
    run = jax.jit(
        lambda: scf(field, orthonormal(one_word(jnp.asarray(OVERLAP))), start, 60, FLOAT64)
    )()
    jax.effects_barrier()
    return run, counted


def test_it_ends_where_the_plain_loop_ends_with_fewer_evaluations():
    (plain, often), (run, rarely) = solve("plain"), solve("staged")
    assert bool(run.converged)
    assert float(run.commutator) < FLOAT64.commutator
    np.testing.assert_allclose(run.density, plain.density, atol=1e-6)
    np.testing.assert_allclose(run.energy, plain.energy, atol=1e-6)
    assert float(run.terms.total().hi) == pytest.approx(float(plain.terms.total().hi), abs=1e-11)
    assert len(often) == int(plain.cycles)
    assert len(rarely) <= 5
    assert len(rarely) < 0.6 * len(often)
    assert not any(rarely)


@pytest.mark.parametrize("full_grid", [False, True])
def test_a_rough_part_is_not_that_of_the_end(full_grid):
    """Nor is it used where all cycles have the full grid, as after a small gap."""
    plain, _ = solve("plain")
    run, _ = solve("rough full grid" if full_grid else "rough")
    assert bool(run.converged)
    np.testing.assert_allclose(run.density, plain.density, atol=1e-6)
    np.testing.assert_allclose(run.energy, plain.energy, atol=1e-6)


def test_the_whole_matrix_is_needed_once_near_the_end():
    (plain, _), (run, in_part) = solve("plain"), solve("in part")
    assert bool(run.converged)
    np.testing.assert_allclose(run.density, plain.density, atol=1e-6)
    np.testing.assert_allclose(run.energy, plain.energy, atol=1e-6)
    assert float(run.terms.total().hi) == pytest.approx(float(plain.terms.total().hi), abs=1e-11)
    # The first one is there because the guess, no electrons, commutes with every matrix.
    assert in_part[0] is False
    assert in_part[1:].count(False) == 1
    assert in_part[1:].count(True) >= 3
    _, few = staged([], 1.05, 0.1, how="in part").coarse(run.evaluated)
    np.testing.assert_allclose(
        few + run.lacking, REPULSION * jnp.diag(jnp.diag(run.evaluated)), atol=1e-6
    )


def test_a_matrix_nearby_is_kept_between_empty_orbitals_and_nowhere_else():
    rng = np.random.default_rng(5)
    matrices = [x + x.T for x in rng.normal(size=(2, N, N))]
    whole, other = map(jnp.asarray, matrices)
    C = np.linalg.solve(np.linalg.cholesky(OVERLAP).T, np.linalg.qr(rng.normal(size=(N, N)))[0])
    L = 2**0.5 * C[:, :OCCUPIED]
    columns = columns_of_density(jnp.asarray(L @ L.T))
    assert int(columns.count) == OCCUPIED
    touched = Touched(PORTABLE, columns, Nearby(other, jnp.ones((), bool)))
    matrix = touched.completed(whole @ columns.vectors[:, :N], jnp.asarray(OVERLAP))
    inside, wanted, kept = (C.T @ x @ C for x in (matrix, whole, other))
    np.testing.assert_allclose(inside[:OCCUPIED], wanted[:OCCUPIED], atol=1e-12)
    np.testing.assert_allclose(inside[OCCUPIED:, OCCUPIED:], kept[OCCUPIED:, OCCUPIED:], atol=1e-12)


def test_a_loop_on_the_full_grid_is_the_plain_one():
    (plain, often), (run, count) = solve("plain"), solve("full grid")
    assert len(count) == len(often)
    assert int(run.cycles) == int(plain.cycles)
    np.testing.assert_allclose(run.density, plain.density, atol=1e-12)


def test_a_coarse_part_that_knows_nothing_only_costs_time():
    """Its answer has the wrong sign: in the end all points are asked in every cycle."""
    (plain, _), (run, count) = solve("plain"), solve("staged", slope=-1.0, offset=2.0)
    assert bool(run.converged)
    assert len(count) > 6
    np.testing.assert_allclose(run.density, plain.density, atol=1e-6)


def test_renewed_entries_have_the_commutators_of_their_new_matrices():
    rng = np.random.default_rng(3)

    def symmetric():
        x = rng.normal(size=(N, N))
        return jnp.asarray(x + x.T)

    focks, densities = [symmetric() for _ in range(3)], [symmetric() for _ in range(3)]
    history = diis_start(4, N, np.float64)
    for i, (f, d) in enumerate(zip(focks, densities, strict=True)):
        lasting = jnp.asarray(i != 1)
        history, _ = diis_step(history, jnp.int32(i), f, commutator_of(f, d), lasting)
    change = jnp.stack([symmetric(), jnp.zeros((N, N)), symmetric(), jnp.zeros((N, N))])
    new = renewed(history, change, jnp.stack([*densities, jnp.zeros((N, N))]))
    for i, (f, d) in enumerate(zip(focks, densities, strict=True)):
        error = np.asarray(commutator_of(f + change[i], d)).ravel()
        np.testing.assert_allclose(new.error[i], error / np.linalg.norm(error), atol=1e-12)
        assert abs(float(new.norm[i])) == pytest.approx(np.linalg.norm(error))
    assert (np.sign(new.norm) == [1, -1, 1, 0]).all()
