"""AO values and gradients on points, against PySCF."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import METHYL_CHLORIDE, mole_of

from pyscf_ipu import Settings
from pyscf_ipu.grid.ao_values import ao_values
from pyscf_ipu.numerics.two_words import split
from pyscf_ipu.shapes import conformer as shapes_conformer
from pyscf_ipu.shapes import tables
from pyscf_ipu.shapes.atoms import gather_shells
from pyscf_ipu.shapes.layout import layout_of
from pyscf_ipu.shapes.shape import shape_of

N_POINTS = 200


def values(settings, owner_atom, local, gradient):
    """Ours at the points around one atom, in PySCF's AO order, float64: [D, N, G]."""
    mol = METHYL_CHLORIDE
    dtype = settings.numerics.scf_dtype
    shape = shape_of(mol.numbers, settings.basis, settings.cart, 0)
    layout = layout_of(shape)
    centre = mol.positions.mean(axis=0)

    def run(class_tables, conformer, local, owner):
        shells = gather_shells(layout, class_tables, conformer, dtype)
        return ao_values(layout, shells, local, owner, gradient)

    with settings.numerics.scope():
        owner = split(np.tile(mol.positions[owner_atom] - centre, (len(local), 1)), dtype)
        found = jax.jit(run)(
            tables.shape_tables(shape, settings), shapes_conformer.conformer(mol, shape, settings),
            jnp.asarray(local, dtype), owner,
        )  # fmt: skip
    order = shapes_conformer.ao_order(mol, shape, settings)
    found = np.asarray(found, np.float64)
    padded = np.setdiff1d(np.arange(shape.n_ao), order)
    assert not found[:, padded].any()
    return found[:, order]


@pytest.mark.parametrize(
    ("settings", "tolerance"),
    [
        (Settings(precision="float64", grid_level=0), 1e-12),
        (Settings(precision="float32", grid_level=0), 3e-6),
        (Settings(precision="float64", basis="6-31g*", grid_level=0), 1e-12),
        (Settings(precision="float64", basis="6-31g*", cart=True, grid_level=0), 1e-12),
        (Settings(precision="float64", basis="cc-pvdz", grid_level=0), 1e-12),
    ],
    ids=["sto-3g", "float32", "6-31g*", "cartesian", "cc-pvdz"],
)
def test_values_and_gradients(settings, tolerance):
    rng = np.random.default_rng(0)
    local = rng.normal(size=(N_POINTS, 3)) * 10 ** rng.uniform(-2, 0.7, (N_POINTS, 1))
    local[0] = 0.0  # a point on the nucleus
    local = local.astype(np.float32).astype(np.float64)
    mole = mole_of(METHYL_CHLORIDE, settings.basis, settings.cart)
    name = "GTOval_cart_deriv1" if settings.cart else "GTOval_sph_deriv1"
    expected = mole.eval_gto(name, METHYL_CHLORIDE.positions[1] + local).transpose(0, 2, 1)
    found = values(settings, 1, local, gradient=True)
    scale = np.abs(expected).max(axis=2, keepdims=True)
    assert np.max(np.abs(found - expected) / scale) < tolerance


def test_values_alone_are_the_first_of_four():
    settings = Settings(precision="float64", grid_level=0)
    local = np.random.default_rng(1).normal(size=(20, 3))
    alone = values(settings, 0, local, gradient=False)
    assert alone.shape[0] == 1
    np.testing.assert_allclose(alone[0], values(settings, 0, local, gradient=True)[0], atol=1e-14)
