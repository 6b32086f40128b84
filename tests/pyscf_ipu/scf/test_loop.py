"""The SCF loop on model Fock operators: it must know nothing else about a molecule."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.numerics.precision import PRECISIONS
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.scf.loop import ENERGY_WINDOW, Start, density_of, orthonormal, reorthonormalise, scf

N, OCCUPIED = 6, 2
FLOAT64 = PRECISIONS["float64"]


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def model():
    """A Hubbard-like chain in a skew basis: overlap, core Hamiltonian."""
    rng = np.random.default_rng(8)
    overlap = np.eye(N) + 0.15 * (np.eye(N, k=1) + np.eye(N, k=-1))
    core = np.diag(rng.normal(size=N)) - 0.8 * (np.eye(N, k=1) + np.eye(N, k=-1))
    return overlap, core


class Energy(NamedTuple):
    only: Pair

    def total(self):
        return self.only


def fock_of(core, repulsion):
    """F = h + U diag(D): energy tr(D h) + U/2 sum D_ii^2."""

    def fock(density):
        own = jnp.diag(density)
        energy = jnp.sum(density * core) + 0.5 * repulsion * jnp.sum(own * own)
        return core + repulsion * jnp.diag(own), Energy(Pair(energy, jnp.zeros_like(energy)))

    return fock


@functools.partial(jax.jit, static_argnames=("cycles", "repulsion", "tolerance"))
def solve(overlap, core, repulsion=0.4, cycles=60, tolerance=FLOAT64, guess=None):
    start = jnp.zeros_like(core) if guess is None else guess
    occupied = jnp.int32(OCCUPIED)
    return scf(
        fock_of(core, repulsion),
        orthonormal(Pair(overlap, jnp.zeros_like(overlap))),
        Start(start, occupied),
        cycles,
        tolerance,
    )


def generalised_eigh(fock, overlap):
    root = np.linalg.inv(np.linalg.cholesky(overlap))
    energy, vectors = np.linalg.eigh(root @ fock @ root.T)
    return energy, root.T @ vectors


def test_it_finds_the_self_consistent_field(model):
    overlap, core = model
    run = solve(overlap, core)
    density = np.asarray(run.density)
    assert bool(run.converged)
    assert int(run.cycles) < 30
    assert float(run.commutator) < FLOAT64.commutator
    # The density is that of the lowest orbitals of its own Fock matrix.
    fock, _ = fock_of(core, 0.4)(jnp.asarray(density))
    _, orbitals = generalised_eigh(np.asarray(fock), overlap)
    again = 2 * orbitals[:, :OCCUPIED] @ orbitals[:, :OCCUPIED].T
    np.testing.assert_allclose(density, again, atol=1e-5)
    np.testing.assert_allclose(density @ overlap @ density, 2 * density, atol=1e-10)
    np.testing.assert_allclose(run.orbitals.T @ overlap @ run.orbitals, np.eye(N), atol=1e-10)


def test_without_repulsion_it_is_one_diagonalisation(model):
    overlap, core = model
    run = solve(overlap, core, repulsion=0.0)
    energy, orbitals = generalised_eigh(core, overlap)
    np.testing.assert_allclose(
        run.density, 2 * orbitals[:, :OCCUPIED] @ orbitals[:, :OCCUPIED].T, atol=1e-10
    )
    assert float(run.energies.hi[0]) == pytest.approx(2 * energy[:OCCUPIED].sum(), abs=1e-9)
    assert int(run.cycles) <= 4


def test_the_guess_does_not_decide_the_answer(model):
    overlap, core = model
    plain, other = solve(overlap, core), solve(overlap, core, guess=jnp.eye(N) * 0.6)
    assert int(plain.cycles) != int(other.cycles) or bool(jnp.any(plain.density != other.density))
    np.testing.assert_allclose(plain.density, other.density, atol=1e-5)


def test_the_window_holds_the_latest_energies_newest_first(model):
    overlap, core = model
    run = solve(overlap, core, repulsion=1.0)
    energies = np.asarray(run.energies.hi)
    shorter = solve(overlap, core, repulsion=1.0, cycles=int(run.cycles) - 1)
    assert energies.shape == (ENERGY_WINDOW,)
    np.testing.assert_allclose(energies[1:], shorter.energies.hi[:-1], rtol=1e-12)
    # The evaluation after convergence is not a cycle; it is as low or lower.
    assert float(run.terms.total().hi) == pytest.approx(energies[0], abs=1e-9)


def test_too_few_cycles_is_not_converged(model):
    overlap, core = model
    run = solve(overlap, core, cycles=2)
    assert not bool(run.converged)
    assert int(run.cycles) == 2
    assert np.isinf(np.asarray(run.energies.hi)[2:]).all()


def test_a_tighter_threshold_costs_cycles(model):
    overlap, core = model
    loose = dataclasses.replace(FLOAT64, commutator=1e-2, energy_change=1e-2)
    assert int(solve(overlap, core, tolerance=loose).cycles) < int(solve(overlap, core).cycles)


def test_a_nan_ends_the_loop(model):
    overlap, core = model
    core = core.copy()
    core[0, 0] = np.nan
    run = solve(overlap, core)
    assert not bool(run.converged)
    assert int(run.cycles) == 1


def test_orthonormal_is_the_square_root(model):
    overlap, _ = model
    basis = orthonormal(Pair(jnp.asarray(overlap), jnp.zeros((N, N))))
    np.testing.assert_allclose(basis.inverse @ overlap @ basis.inverse, np.eye(N), atol=1e-13)
    np.testing.assert_allclose(basis.root @ basis.root, overlap, atol=1e-13)
    np.testing.assert_allclose(basis.inverse, basis.inverse.T, atol=1e-14)


def test_occupation_is_data(model):
    _, vectors = np.linalg.eigh(model[1])
    run = jax.jit(density_of)
    for n in range(N + 1):
        density = run(jnp.asarray(vectors), jnp.int32(n))
        assert float(jnp.trace(density)) == pytest.approx(2 * n)


def test_reorthonormalise():
    rng = np.random.default_rng(0)
    overlap = np.eye(5) + 0.05 * rng.normal(size=(5, 5))
    overlap = overlap @ overlap.T
    values, vectors = np.linalg.eigh(overlap)
    exact = vectors / np.sqrt(values)
    # An overlap in two words: the low one counts.
    words = Pair(jnp.asarray(overlap - 1e-3), jnp.full((5, 5), 1e-3))
    found = reorthonormalise(jnp.asarray(exact + 1e-4 * rng.normal(size=(5, 5))), words)
    np.testing.assert_allclose(found.T @ overlap @ found, np.eye(5), atol=1e-14)
