"""The native codelet "ao_values" against its portable vertex."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import METHYL_CHLORIDE, NATIVE, QUICK, WATER

from pyscf_ipu import Settings
from pyscf_ipu.codelets import library
from pyscf_ipu.grid.ao_blocks import (
    NEGLIGIBLE,
    SCREENED_POINTS,
    ao_blocks,
    ao_blocks_vertex,
    not_negligible,
    pack,
    packed_ao_blocks,
    shell_table,
)
from pyscf_ipu.shapes import conformer as shapes_conformer
from pyscf_ipu.shapes import tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.layout import layout_of
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan

pytestmark = NATIVE

BASES = {
    "sto-3g": {},
    "6-31g*": {"basis": "6-31g*"},
    "cartesian": {"basis": "6-31g*", "cart": True},
    "cc-pvdz": {"basis": "cc-pvdz"},  # several contractions of one shell
    "f shells": {"basis": "def2-tzvp"},
    "cartesian d, spherical f": {"basis": "def2-tzvp", "cart": "6d7f"},
}


def both(settings, n_points, gradient, reach=0.7, mol=METHYL_CHLORIDE):
    """Native and portable AOs on two blocks around all slots, one of which is empty."""
    dtype = settings.numerics.scf_dtype
    shape = shape_of(mol.numbers, settings.basis, settings.cart, 0)
    assert shape.n_atoms > mol.n_atoms
    rng = np.random.default_rng(n_points)
    local = rng.normal(size=(2, n_points, 3)) * 10 ** rng.uniform(-2, reach, (2, n_points, 1))
    owner = np.sort(rng.integers(0, shape.n_atoms, (2, n_points)), axis=1)

    def run(evaluate, class_tables, conformer, local):
        return evaluate(gather_atoms(tile_plan(shape), class_tables, conformer, dtype), local)

    def native(atoms, local):
        weights = jnp.ones(owner.shape, local.dtype)
        return ao_blocks(atoms, local, owner, weights, gradient, screened=False).values

    def portable(atoms, local):
        centre = atoms.nuclei.at(jnp.asarray(owner, np.int32))
        return ao_blocks_vertex(atoms.layout, atoms.shells, local, centre, gradient)

    with settings.numerics.scope():
        args = (
            tables.shape_tables(shape, settings), shapes_conformer.conformer(mol, shape, settings),
            jnp.asarray(local, dtype),
        )  # fmt: skip
        run_jit = jax.jit(run, static_argnums=0, compiler_options=QUICK)
        return [np.asarray(run_jit(f, *args)) for f in (native, portable)]


@pytest.mark.skipif(
    library() is None or library().instruction_set == "baseline",
    reason="without fused products the second words are rounded away",
)
def test_exponents_and_coefficients_are_not_rounded_to_float32():
    """Every value has an error of float32; on the average over points, AOs have none.

    Of exponents and coefficients in one word 1.9e-8 would remain.
    """
    settings = [Settings(precision=p, grid_level=0) for p in ("float32", "float64")]
    values = [both(s, 4000, False, reach=0.0)[0][:, 0].astype(float) for s in settings]
    shifts = []
    for narrow, exact in zip(*(np.swapaxes(v, 0, 1) for v in values), strict=True):
        if exact.any():
            large = np.abs(exact) > 0.1 * np.abs(exact).max()
            error, exact = (narrow - exact)[large], exact[large]
            shifts.append(error @ exact / (exact @ exact))
    assert np.mean(np.abs(shifts)) < 1e-8


# Points that fill no vector in one precision, points that do in the other.
HOW = [(17, "float32", 2e-6), (64, "float64", 1e-14)]
OTHERWISE = [(17, "float64", 1e-14), (64, "float32", 2e-6)]
SECOND = [("6-31g*", "float32"), ("cartesian", "float32"), ("cc-pvdz", "float64")]
SECOND += [("cartesian d, spherical f", "float64"), ("f shells", "float32")]
"""Kinds of shells that other sets here have in this precision, too."""


def case(basis, how):
    again = how in OTHERWISE or (basis, how[1]) in SECOND
    return pytest.param(basis, *how, marks=[pytest.mark.long] if again else [])


@pytest.mark.parametrize(
    ("basis", "n_points", "precision", "tolerance"),
    [case(basis, how) for how in (*HOW, *OTHERWISE) for basis in BASES],
)
def test_native_is_portable(basis, n_points, precision, tolerance):
    settings = Settings(precision=precision, grid_level=0, **BASES[basis])
    # Chlorine's shells take as long to compile as all others: in large sets they are for `long`.
    large = basis != "sto-3g" and (n_points, precision, tolerance) in HOW
    mol = WATER if large else METHYL_CHLORIDE
    native, portable = both(settings, n_points, gradient=True, mol=mol)
    assert native.shape == portable.shape
    assert native.dtype == settings.numerics.scf_dtype
    scale = np.abs(portable).max(axis=(0, 3), keepdims=True) + 1e-30
    assert np.max(np.abs(native - portable) / scale) < tolerance


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("n_points", [1, 15])
def test_points_that_fill_no_vector(n_points, gradient):
    native, portable = both(Settings(precision="float64", grid_level=0), n_points, gradient)
    np.testing.assert_allclose(native, portable, atol=1e-13)


@pytest.mark.parametrize(("precision", "floor"), [("float32", 1e-15), ("float64", 1e-30)])
def test_far_points_lose_nothing_that_matters(precision, floor):
    native, portable = both(
        Settings(precision=precision, grid_level=0), 200, gradient=True, reach=1.5
    )
    dropped = (native == 0) & (portable != 0)
    assert dropped.any()
    assert not np.any(np.abs(portable[dropped]) > floor)


def test_the_table_of_shells_covers_all_orbitals():
    settings = Settings(basis="cc-pvdz", grid_level=0)
    layout = layout_of(shape_of(METHYL_CHLORIDE.numbers, settings.basis, settings.cart, 0))
    table = shell_table(layout)
    functions = table[:, 5:] @ np.array([1, 3, 5, 7])
    rows = np.concatenate([a + np.arange(n) for a, n in zip(table[:, 1], functions, strict=True)])
    np.testing.assert_array_equal(np.sort(rows), np.arange(layout.shape.n_ao))
    assert np.all(np.diff(table[:, 0]) >= 0)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("points", [64, 40])
def test_packed_aos_are_those_that_are_not_negligible(precision, points):
    settings = Settings(precision=precision, grid_level=0)
    mol, dtype = METHYL_CHLORIDE, settings.numerics.scf_dtype
    shape = shape_of(mol.numbers, settings.basis, settings.cart, 0)
    rng = np.random.default_rng(1)
    away = np.linspace(0, 20, 20)
    local = rng.normal(size=(21, points, 3)) + np.append(away, 0.0)[:, None, None] * [1, 0, 0]
    weights = rng.random((21, points)) * np.append(np.ones(20), 0.0)[:, None]
    owner = np.zeros((21, points), np.int32)
    limit = NEGLIGIBLE[np.dtype(dtype)]

    def run(class_tables, conformer, local, weights):
        atoms = gather_atoms(tile_plan(shape), class_tables, conformer, dtype)
        every = ao_blocks(atoms, local, owner, weights, True, screened=False).values
        zeroed = ao_blocks(atoms, local, owner, weights, True).values
        native = packed_ao_blocks(atoms, local, owner, weights, True)
        live = not_negligible(every, weights, limit)[:, 0]
        return every, zeroed, live, native, pack(every, live)

    with settings.numerics.scope():
        every, zeroed, live, native, portable = jax.tree.map(
            np.asarray,
            jax.jit(run, compiler_options=QUICK)(
                tables.shape_tables(shape, settings),
                shapes_conformer.conformer(mol, shape, settings),
                *(jnp.asarray(x, dtype) for x in (local, weights)),
            ),
        )
    np.testing.assert_array_equal(zeroed, np.where(live[:, None, :, None], every, 0.0))
    for found, expected in zip(native.packed, portable.packed, strict=True):
        np.testing.assert_array_equal(found, expected)
    counts = native.packed.count
    np.testing.assert_array_equal(counts, live.sum(1))
    assert len(set(counts)) > 3
    assert counts[-1] == 0
    for t, count in enumerate(counts):
        np.testing.assert_array_equal(native.values[t, :, :count], portable.values[t, :, :count])
        assert not portable.values[t, :, count:].any()
    lost = (every - zeroed).astype(float) ** 2 * weights[:, None, None]
    assert lost.sum((1, 3)).max() < limit**2


def test_too_many_points_cannot_be_packed():
    settings, mol, count = Settings(grid_level=0), METHYL_CHLORIDE, SCREENED_POINTS + 1
    shape = shape_of(mol.numbers, settings.basis, settings.cart, 0)

    def run(class_tables, conformer):
        atoms = gather_atoms(tile_plan(shape), class_tables, conformer, np.float32)
        local, weights = jnp.zeros((1, count, 3)), jnp.zeros((1, count))
        return packed_ao_blocks(atoms, local, np.zeros((1, count), np.int32), weights, True)

    arrays = (
        tables.shape_tables(shape, settings), shapes_conformer.conformer(mol, shape, settings)
    )  # fmt: skip
    with pytest.raises(ValueError, match="pack up to 64"):
        jax.eval_shape(run, *arrays)
