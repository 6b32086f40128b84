"""Derivatives of integrals: native against portable, and both against finite differences."""

import jax
import numpy as np
import pytest
from oracle import NATIVE, SYSTEMS, native_and_portable, random_molecule

from pyscf_ipu import Settings
from pyscf_ipu.codelets import strip_primitives
from pyscf_ipu.gradient.electron_repulsion import repulsion_gradient
from pyscf_ipu.gradient.one_electron import one_electron_gradient, overlap_matrix
from pyscf_ipu.gradient.pairs import by_nuclei
from pyscf_ipu.integrals import one_electron
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.integrals.supermatrix import (
    pack_density,
    packed_indices,
    pair_order,
    repulsion,
    supermatrix,
)
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan

EXCHANGE = Interaction(0.2, 0.5, 0.4)
"""Of a range-separated hybrid."""


def problem(numbers, basis, precision, strip):
    """(plan, tables, conformer, symmetric density) of random atoms."""
    settings = Settings(basis=basis, precision=precision, grid_level=0)
    mol = random_molecule(numbers, 2.5)
    shape = shape_of(mol.numbers, basis, False, 0)
    plan = tile_plan(shape, 1, strip)
    dtype = settings.numerics.scf_dtype
    arrays = tables.shape_tables(shape, settings), conformer.conformer(mol, shape, settings)
    density = np.random.default_rng(1).normal(size=(shape.n_ao, shape.n_ao)).astype(dtype)
    return settings, plan, *arrays, density + density.T


@NATIVE
def test_native_and_portable_derivatives():
    """By E as a share of E: the native form leaves out what cannot reach a nucleus."""
    name, precision = "15 pairs", "float32"
    numbers, basis, strip = SYSTEMS[name]
    settings, plan, table, mol, density = problem(numbers, basis, precision, strip)
    dtype = settings.numerics.scf_dtype

    def run(strips, density, atoms):
        one, nuclei = one_electron_gradient(atoms, strips, density, density)
        two = repulsion_gradient(plan, strips, density, EXCHANGE)
        by_e = [
            x.hermite * s.hermite for part in (one, two) for x, s in zip(part, strips, strict=True)
        ]
        return [x.centre for x in two], [x.centre.hi for x in one], by_e, nuclei

    with settings.numerics.scope():
        atoms = jax.jit(lambda *x: gather_atoms(plan, *x, dtype))(table, mol)
        strips = jax.jit(pair_strips)(atoms)
        native, portable, names = native_and_portable(run, strips, density, atoms)
    assert sorted(set(names)) == ["attraction_gradient", "eri_gradient"]
    for a, b in zip(native, portable, strict=True):
        scale = max(1.0, float(np.abs(b).max()))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * scale)


@NATIVE
def test_float32_keeps_the_digits_of_the_repulsion():
    """Also where charge distributions coincide: the pieces of the Boys functions begin there."""
    numbers = [8, 6, 1, 1]
    _, _, _, _, density = problem(numbers, "sto-3g", "float32", strip_primitives())

    def force(precision):
        settings, plan, table, mol, _ = problem(numbers, "sto-3g", precision, strip_primitives())
        dtype = settings.numerics.scf_dtype

        def run(table, mol, density):
            atoms = gather_atoms(plan, table, mol, dtype)
            strips = pair_strips(atoms)
            two = repulsion_gradient(plan, strips, density, EXCHANGE)
            given = [
                s._replace(
                    centre=Pair(g.centre, jax.numpy.zeros_like(g.centre)),
                    hermite=g.hermite,
                    kinetic=jax.numpy.zeros_like(s.kinetic),
                )
                for s, g in zip(strips, two, strict=True)
            ]
            return by_nuclei(atoms, given)

        with settings.numerics.scope():
            return np.asarray(jax.jit(run)(table, mol, density.astype(dtype)))

    exact = force("float64")
    np.testing.assert_allclose(force("float32"), exact, rtol=0, atol=5e-6 * np.abs(exact).max())


@NATIVE
def test_native_and_portable_pairs():
    name, precision = "15 pairs", "float32"
    numbers, basis, strip = SYSTEMS[name]
    settings, plan, table, mol, _ = problem(numbers, basis, precision, strip)
    dtype = settings.numerics.scf_dtype
    rng = np.random.default_rng(4)
    with settings.numerics.scope():
        atoms = jax.jit(lambda *x: gather_atoms(plan, *x, dtype))(table, mol)
        strips = jax.jit(pair_strips)(atoms)
        given = [jax.tree.map(lambda x: rng.normal(size=x.shape).astype(dtype), s) for s in strips]
        native, portable, names = native_and_portable(by_nuclei, atoms, given)
    assert set(names) == {"pair_gradient"}
    scale = float(np.abs(portable[0]).max())
    np.testing.assert_allclose(native[0], portable[0], rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize(
    "system",
    [
        ([7, 1, 1], "sto-3g"),
        pytest.param(([8, 1], "6-31g*"), marks=pytest.mark.slow),
    ],
    ids=lambda s: s[1],
)
def test_derivatives_are_slopes_of_integrals(system):
    """At a density that is nothing but symmetric, the whole chain from positions on."""
    settings, plan, table, mol, density = problem(*system, "float64", strip_primitives())
    step, lo = 1e-4, np.zeros_like(mol.positions.lo)
    direction = np.random.default_rng(2).normal(size=lo.shape)
    rows = plan.row_of[packed_indices(plan.layout.shape.n_ao)]

    def pieces(hi):
        moved = mol._replace(positions=Pair(hi, lo))
        atoms = gather_atoms(plan, table, moved, np.float64)
        return atoms, pair_strips(atoms)

    def energy(hi):
        atoms, strips = pieces(hi)
        one = one_electron(atoms, strips)
        d = pack_density(jax.numpy.asarray(density))
        _, two = repulsion(supermatrix(plan, strips, EXCHANGE), d, pair_order(plan))
        return d @ (one.kinetic + one.nuclear - one.overlap)[rows] + two.value()

    def derivative(hi):
        atoms, strips = pieces(hi)
        d = jax.numpy.asarray(density)
        one, on_nuclei = one_electron_gradient(atoms, strips, d, d)
        two = repulsion_gradient(plan, strips, d, EXCHANGE)
        both = [
            a._replace(
                centre=Pair(a.centre.hi + b.centre, a.centre.lo), hermite=a.hermite + b.hermite
            )
            for a, b in zip(one, two, strict=True)
        ]
        return by_nuclei(atoms, both) + on_nuclei, overlap_matrix(plan, strips)

    with settings.numerics.scope():
        table, mol = jax.tree.map(jax.numpy.asarray, (table, mol))
        slope = jax.jit(energy)
        ends = [float(slope(mol.positions.hi + s * step * direction)) for s in (1, -1)]
        found, overlap = map(np.asarray, jax.jit(derivative)(mol.positions.hi))
    expected = (ends[0] - ends[1]) / (2 * step)
    assert abs(expected) > 0.1
    assert np.vdot(found, direction) == pytest.approx(expected, rel=1e-7, abs=1e-6)
    np.testing.assert_allclose(found.sum(0), 0, atol=1e-10 * np.abs(found).max())
    np.testing.assert_array_equal(overlap, overlap.T)
