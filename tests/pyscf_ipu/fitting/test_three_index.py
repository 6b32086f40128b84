"""Three-index integrals and metrics against libcint's; native against portable."""

import jax
import numpy as np
import pytest
from fitted_cases import OMEGA, PORTABLE, case, in_float64
from oracle import NATIVE, native_and_portable
from pyscf import df

from pyscf_ipu.fitting.three_index import auxiliary_of, metric, three_index
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.numerics.interaction import COULOMB, Interaction

LONG, SHORT = Interaction(0.0, 1.0, OMEGA), Interaction(1.0, -1.0, OMEGA)
CASES = [
    ("def2-svp", False, COULOMB, 0.0),
    ("def2-svp", False, LONG, OMEGA),
    ("6-31g*", True, SHORT, -OMEGA),
]


def both(which, of):
    def integrals(tabulated, conf):
        atoms = which.atoms(tabulated, conf)
        auxiliary = auxiliary_of(atoms, which.layout)
        return three_index(which.plan, pair_strips(atoms), auxiliary, of), metric(auxiliary, of)

    return integrals


@pytest.mark.parametrize(("basis", "cart", "of", "omega"), CASES)
def test_integrals_are_libcints(basis, cart, of, omega):
    which = case(basis, cart)
    three, two = in_float64(both(which, of), *which.arrays)
    field, auxiliary = which.field
    with field.mol.with_range_coulomb(omega), auxiliary.with_range_coulomb(omega):
        expected = df.incore.aux_e2(field.mol, auxiliary, intor="int3c2e")
        matrix = auxiliary.intor("int2c2e")
    found = three[which.plan.row_of][np.ix_(which.order, which.order)]
    # The order of auxiliary functions is our own: they are recognised by a sum over all AOs.
    weights = np.random.default_rng(1).normal(size=expected.shape[:2])
    mine, theirs = (np.einsum("ijp,ij->p", x, weights) for x in (found, expected))
    there = np.flatnonzero(mine)
    a, b = there[np.argsort(mine[there])], np.argsort(theirs)
    assert len(a) == len(b)
    np.testing.assert_allclose(found[..., a], expected[..., b], rtol=0, atol=1e-10)
    np.testing.assert_allclose(two[np.ix_(a, a)], matrix[np.ix_(b, b)], rtol=0, atol=1e-10)


def test_functions_that_do_not_exist_are_left_out_of_the_metric():
    which = case("def2-svp")
    three, two = in_float64(both(which, COULOMB), *which.arrays)
    absent = ~three.any(axis=0)
    assert 0 < absent.sum() < len(absent)
    np.testing.assert_array_equal(two[absent], np.eye(len(two))[absent])
    np.testing.assert_array_equal(two[:, absent], np.eye(len(two))[:, absent])


@NATIVE
@pytest.mark.parametrize("mol", PORTABLE)
def test_native_and_portable(mol):
    which = case("6-31g", strip=20, mol=mol)

    def integrals(tabulated, conf):
        atoms = which.atoms(tabulated, conf)
        auxiliary = auxiliary_of(atoms, which.layout)
        return three_index(which.plan, pair_strips(atoms), auxiliary, LONG)

    with jax.enable_x64(True):
        native, portable, names = native_and_portable(integrals, *which.arrays)
    assert names.count("fitting_integrals") == 1
    assert np.abs(portable[0]).max() > 0.1
    np.testing.assert_allclose(native[0], portable[0], rtol=0, atol=1e-11)
