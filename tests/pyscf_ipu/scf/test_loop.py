"""The SCF loop on model Fock operators: it must know nothing else about a molecule."""

import dataclasses
import functools

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
from pyscf_ipu.scf.cycle import AUFBAU_ERROR
from pyscf_ipu.scf.lowest.starts import OTHER_STARTS, Start, scf
from pyscf_ipu.scf.orbitals import orthonormal
from pyscf_ipu.scf.run import ENERGY_WINDOW, Cycling

pytestmark = pytest.mark.slow

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


@functools.partial(jax.jit, static_argnames=("cycles", "tolerance"))
def solve(overlap, core, repulsion=0.4, cycles=60, tolerance=FLOAT64, guess=None):
    start = jnp.zeros_like(core) if guess is None else guess
    occupied = jnp.int32(OCCUPIED)
    return scf(
        fock_of(core, repulsion),
        orthonormal(exactly(overlap)),
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


@functools.partial(jax.jit, static_argnames=("cycles", "hopping", "repulsion"))
def two_sites(guess, cycles, hopping=1e-7, repulsion=1.0):
    """H2 torn apart: two equal sites, one pair of electrons, almost no hopping."""
    basis = orthonormal(exactly(jnp.eye(2)))
    start = Start(jnp.asarray(guess), jnp.int32(1))
    return scf(fock_of(hopping_between_two(hopping), repulsion), basis, start, cycles, FLOAT64)


def test_a_density_that_is_not_its_own_is_not_converged():
    """Both electrons on one site: the commutator vanishes, but the other site lies lower."""
    ionic = two_sites(np.array([[2.0, 0.0], [0.0, 0.0]]), cycles=20)
    assert float(ionic.commutator) < FLOAT64.commutator
    assert float(ionic.density_error) > AUFBAU_ERROR
    assert not bool(ionic.converged)


def test_a_second_start_finds_what_plain_diis_cannot():
    """From nearly equal sites the plain loop would let all electrons hop to and fro."""
    run = two_sites(np.diag([1.0 + 1e-6, 1.0 - 1e-6]), cycles=60, hopping=1e-3)
    assert bool(run.converged)
    assert float(run.density_error) < 1e-3
    np.testing.assert_allclose(jnp.diag(run.density), [1.0, 1.0], atol=1e-3)


def attracting_sites(hopping=HOPPING, evaluated=lambda _: None, **cycling):
    """Two equal sites on which electrons attract each other: shared ones are a saddle, gap 0.2.

    `evaluated` is called where a Fock matrix is made.
    """
    fock = fock_of(hopping_between_two(hopping), ATTRACTION)

    def told(density):
        jax.debug.callback(evaluated, density[0, 0])
        return fock(density)

    basis = orthonormal(exactly(jnp.eye(2)))
    start = Start(jnp.eye(2), jnp.int32(1), cycling=Cycling(**cycling))
    return scf(told, basis, start, 60, FLOAT64)


@functools.cache
def attracted(**cycling):
    """What becomes of them."""
    return jax.jit(functools.partial(attracting_sites, **cycling))()


def test_a_small_gap_leads_to_a_lower_state():
    plain, lowest = attracted(), attracted(small_gap=0.25)
    assert bool(plain.converged)
    assert bool(lowest.converged)
    assert float(plain.terms.total().hi) == pytest.approx(SHARED_ENERGY, abs=1e-6)
    assert float(lowest.terms.total().hi) == pytest.approx(OWN_ENERGY, abs=1e-6)
    assert float(lowest.density_error) < 1e-3
    assert int(lowest.cycles) > int(plain.cycles)


@pytest.mark.parametrize("cycling", [{"small_gap": 0.15}, {"small_gap": 0.25, "fixed": True}])
def test_an_ordinary_gap_and_fixed_cycles_start_once(cycling):
    plain = attracted(fixed=True) if cycling.get("fixed") else attracted()
    found = attracted(**cycling)
    assert int(found.cycles) == int(plain.cycles)
    np.testing.assert_array_equal(found.density, plain.density)
    np.testing.assert_array_equal(found.energies.hi, plain.energies.hi)


def test_the_record_has_the_cycles_of_all_starts():
    plain = attracted(history=True)
    found = attracted(history=True, small_gap=0.25)
    assert found.history.energy.hi.shape == (2 * 60 * (1 + OTHER_STARTS),)
    energies = np.asarray(found.history.energy.hi)
    assert np.isfinite(energies).sum() == int(found.cycles)
    first = int(plain.cycles)
    np.testing.assert_array_equal(energies[:first], plain.history.energy.hi[:first])


def test_rows_of_a_batch_wait_for_the_other_starts_of_one():
    """Those that have ended make no other guesses of their own in the meantime."""
    evaluations = []
    row = functools.partial(attracting_sites, evaluated=evaluations.append, small_gap=0.25)
    rows = jax.jit(jax.vmap(row))

    def count(*hoppings):
        evaluations.clear()
        run = rows(jnp.asarray(hoppings))
        jax.effects_barrier()
        return run, len(evaluations) / len(hoppings)

    (_, ordinary), (run, several) = count(0.3), count(0.1)
    both, together = count(0.3, 0.1)
    np.testing.assert_array_equal(both.cycles, [ordinary, run.cycles[0]])
    assert ordinary < several <= together <= ordinary + several


@pytest.mark.parametrize("repulsion", [0.2, 0.6, 1.0, 1.4])
def test_the_last_evaluation_is_within_the_threshold_too(model, repulsion):
    overlap, core = model
    loose = dataclasses.replace(FLOAT64, commutator=1e-3, rounding_floor=1e-3, energy_change=1e-2)
    run = solve(overlap, core, repulsion=repulsion, tolerance=loose)
    assert bool(run.converged)
    assert float(run.commutator) < 1e-3
