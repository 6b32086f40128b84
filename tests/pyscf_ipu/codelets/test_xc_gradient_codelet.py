"""The native codelet "xc_gradient" against its portable form, a reverse pass."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import METHYL_CHLORIDE, NATIVE, WATER, native_and_portable

from pyscf_ipu import Settings
from pyscf_ipu.gradient.points.exchange_correlation import points_gradient
from pyscf_ipu.grid.ao_blocks import ao_blocks, packed_ao_blocks
from pyscf_ipu.grid.blocks import Places
from pyscf_ipu.numerics.columns import columns_of_density
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.xc.registry import functional

pytestmark = NATIVE

TOLERANCE = {"float32": 1e-5, "float64": 1e-13}
MOMENTS = {"lda": 1, "pbe": 4, "tpss": 5}


def both(settings, points, mol, by_columns=False):
    """Native and portable forces of random factors on four blocks of points: about one atom, about
    several, in the order of the atoms and not, and far away."""
    dtype = settings.numerics.scf_dtype
    shape = shape_of(mol.numbers, settings.basis, settings.cart, 0)
    xc, rng = functional(settings.xc), np.random.default_rng(points)
    owner = rng.integers(0, mol.n_atoms, (4, points)).astype(np.int32)
    owner[0], owner[1] = owner[0, 0], np.sort(owner[1])
    local = rng.normal(size=(4, points, 3)) * 10 ** rng.uniform(-2, 0.7, (4, points, 1))
    local[3] += 9.0
    factors = rng.normal(size=(4, MOMENTS[settings.xc], points))
    density = rng.normal(size=(shape.n_ao, shape.n_ao))
    pack = packed_ao_blocks if points <= 64 else ao_blocks

    def forces(class_tables, mol, local, owner, factors, density):
        atoms = gather_atoms(tile_plan(shape), class_tables, mol, dtype)
        weights = jnp.ones(owner.shape, dtype)
        ao = pack(atoms, local, owner, weights, xc.needs_gradient)
        return points_gradient(atoms, xc, ao, Places(local, owner), factors, density)

    with settings.numerics.scope():
        density = density @ density.T if by_columns else density + density.T
        floats = (jnp.asarray(x, dtype) for x in (local, factors, density))
        local, factors, density = floats
        if by_columns:
            density = columns_of_density(density)
        given = tables.shape_tables(shape, settings), conformer.conformer(mol, shape, settings)
        args = (*jax.tree.map(jnp.asarray, given), local, jnp.asarray(owner), factors, density)
        native, portable, names = native_and_portable(forces, *args)
    assert names[-1] == "xc_gradient"
    return np.asarray(native[0]), np.asarray(portable[0])


@pytest.mark.parametrize(
    ("xc", "basis", "points", "precision"),
    [
        ("pbe", {}, 64, "float32"),
        pytest.param("pbe", {"basis": "6-31g*"}, 40, "float64", marks=pytest.mark.long),
        ("tpss", {"basis": "def2-tzvp"}, 64, "float64"),
        ("lda", {"basis": "6-31g*", "cart": True}, 17, "float32"),
        pytest.param(
            "pbe", {"basis": "def2-tzvp", "cart": "6d7f"}, 1, "float64", marks=pytest.mark.long
        ),
        pytest.param("tpss", {"basis": "cc-pvdz"}, 200, "float32", marks=pytest.mark.long),
        pytest.param("lda", {"basis": "def2-tzvp"}, 64, "float64", marks=pytest.mark.long),
    ],
)
def test_native_is_portable(xc, basis, points, precision):
    # Chlorine's shells take as long to compile as all others.
    mol = WATER if "basis" in basis else METHYL_CHLORIDE
    settings = Settings(xc=xc, precision=precision, grid_level=0, **basis)
    native, portable = both(settings, points, mol)
    scale = np.abs(portable).max()
    assert scale > 0
    np.testing.assert_allclose(native, portable, rtol=0, atol=TOLERANCE[precision] * scale)
    np.testing.assert_allclose(native.sum(0), 0, atol=TOLERANCE[precision] * scale)


@pytest.mark.parametrize(("xc", "points"), [("lda", 17), ("tpss", 64)])
def test_columns_of_a_density_give_its_forces(xc, points):
    settings = Settings(xc=xc, precision="float64", grid_level=0)
    native, portable = both(settings, points, WATER, by_columns=True)
    scale = np.abs(portable).max()
    np.testing.assert_allclose(native, portable, rtol=0, atol=1e-12 * scale)
