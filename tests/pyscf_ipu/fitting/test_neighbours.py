"""The order in which B has the AOs, and matrices in it."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from fitted_cases import case

from pyscf_ipu import Molecule
from pyscf_ipu.fitting.neighbours import along_molecule, inverse, reordered

BENT = Molecule([8, 1, 1], [[0.0, 0.0, 0.0], [0.2, 0.0, 1.9], [0.1, 0.0, -1.8]])


def test_aos_follow_their_nuclei():
    """In the order of slots the oxygen comes first; here it is between the hydrogens."""
    which = case("6-31g", mol=BENT)
    with jax.enable_x64(True):
        atoms = which.atoms(*which.arrays)
        order = np.asarray(jax.jit(along_molecule)(atoms))
    assert order.dtype == np.int32
    assert sorted(order) == list(range(which.shape.n_ao))
    charges = np.asarray(atoms.charge)[which.plan.layout.ao_atom[order]].astype(int)
    changes = [charges[0], *(b for a, b in pairwise(charges) if a != b)]
    assert changes in ([1, 8, 1], [1, 8, 1, 0])


def test_a_packed_matrix_there_and_back():
    n = 9
    rng = np.random.default_rng(1)
    order = jnp.asarray(rng.permutation(n), jnp.int32)
    square = rng.normal(size=(n, n)).astype(np.float32)
    square = square + square.T
    packed = jnp.asarray(square[np.tril_indices(n)])
    found = jax.jit(reordered)(packed, order)
    np.testing.assert_array_equal(found, square[np.ix_(order, order)][np.tril_indices(n)])
    np.testing.assert_array_equal(jax.jit(reordered)(found, inverse(order)), packed)
    assert reordered(packed, inverse(None)) is packed
