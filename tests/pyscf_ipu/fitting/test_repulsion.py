"""The fitted Coulomb and exchange matrices against PySCF's, at a density and of a change."""

from functools import partial

import numpy as np
import pytest
from fitted_cases import OMEGA, case, in_float64

from pyscf_ipu.fitting.neighbours import along_molecule
from pyscf_ipu.fitting.operators import exchange_parts, operators
from pyscf_ipu.fitting.repulsion import Fitted
from pyscf_ipu.fitting.three_index import auxiliary_of
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.integrals.supermatrix import pack_density, unpack
from pyscf_ipu.kohn_sham.hamiltonian import guess_density
from pyscf_ipu.numerics.interaction import COULOMB, Interaction

EXCHANGE = {
    "none": Interaction(0.0),
    "full": Interaction(0.25),
    "screened": Interaction(0.25, -0.25, OMEGA),
    "both": Interaction(0.2, 0.6, OMEGA),
}


def pyscf_matrix(field, density, exchange):
    """J - x K / 2 as PySCF's Kohn-Sham objects add them up."""
    fit = field.with_df
    coulomb, full = fit.get_jk(density)
    if exchange.omega == 0.0:
        return coulomb - 0.5 * exchange.full * full
    if exchange.full + exchange.long_range == 0.0:
        short = fit.get_jk(density, with_j=False, omega=-exchange.omega)[1]
        return coulomb - 0.5 * exchange.full * short
    far = fit.get_jk(density, with_j=False, omega=exchange.omega)[1]
    return coulomb - 0.5 * (exchange.full * full + exchange.long_range * far)


@pytest.mark.parametrize(
    "name",
    # "both" has the parts of "full", whose field other tests converge; "none" is that of the next.
    [pytest.param(n, marks=pytest.mark.long if n in ("none", "full") else []) for n in EXCHANGE],
)
def test_matrices_and_energies_are_pyscfs(name):
    which, exchange = case("6-31g"), EXCHANGE[name]
    n, order = which.shape.n_ao, which.order
    rng = np.random.default_rng(5)
    columns = np.zeros((n, 4))
    columns[order] = 0.5 * rng.normal(size=(len(order), 4))
    change = np.zeros((n, n))
    change[np.ix_(order, order)] = 0.1 * rng.normal(size=(len(order), len(order)))
    density, change = columns @ columns.T, change + change.T

    def both(tabulated, conf, density, change):
        atoms = which.atoms(tabulated, conf)
        auxiliary = auxiliary_of(atoms, which.layout)
        reference = guess_density(atoms)
        strips, order = pair_strips(atoms), along_molecule(atoms)
        found = operators(which.plan, strips, auxiliary, exchange, reference, order)
        fit = Fitted(reference, found)
        matrix, energy = fit.repulsion(pack_density(density))
        other, _ = fit.repulsion_of_change(pack_density(change))
        return unpack(matrix, n), energy.value(), unpack(other, n)

    matrix, energy, other = in_float64(both, *which.arrays, density, change)
    at = np.ix_(order, order)
    field, _ = which.field
    expected = pyscf_matrix(field, density[at], exchange)
    np.testing.assert_allclose(matrix[at], expected, rtol=0, atol=1e-9)
    assert energy == pytest.approx(0.5 * np.sum(expected * density[at]), abs=1e-9)
    of_change = pyscf_matrix(field, change[at], exchange)
    np.testing.assert_allclose(other[at], of_change, rtol=0, atol=1e-9)


def test_parts_of_exchange():
    assert exchange_parts(Interaction(0.0)) == []
    assert exchange_parts(Interaction(1.0)) == [(1.0, COULOMB)]
    assert exchange_parts(EXCHANGE["screened"]) == [(0.25, Interaction(1.0, -1.0, OMEGA))]
    assert exchange_parts(EXCHANGE["both"]) == [
        (0.2, COULOMB),
        (0.6, Interaction(0.0, 1.0, OMEGA)),
    ]


def test_float32_rounds_b_alone():
    """The reference's field has the digits of float64 in two words."""
    which = case("6-31g")

    def energy(tabulated, conf, dtype):
        atoms = which.atoms(tabulated, conf)
        auxiliary = auxiliary_of(atoms, which.layout)
        reference = guess_density(atoms).astype(dtype)
        found = operators(which.plan, pair_strips(atoms), auxiliary, Interaction(0.0), reference)
        _, energy = Fitted(reference, found).repulsion(pack_density(reference))
        assert found.coulomb.b.dtype == dtype
        return energy

    values = [
        in_float64(partial(energy, dtype=dtype), *which.arrays)
        for dtype in (np.float32, np.float64)
    ]
    single, double = (np.float64(e.hi) + np.float64(e.lo) for e in values)
    assert single == pytest.approx(double, rel=1e-9)
