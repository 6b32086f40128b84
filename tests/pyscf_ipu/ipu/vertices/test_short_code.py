"""Hermite Coulomb integrals as loops and subroutines: the same numbers, in less code."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu import Molecule, Settings
from pyscf_ipu.ipu import BOW, memory_of
from pyscf_ipu.ipu.engine.algorithms.families import family_plan
from pyscf_ipu.ipu.engine.algorithms.family_eri import family_supermatrix
from pyscf_ipu.ipu.engine.spread.turns import code_bytes
from pyscf_ipu.ipu.vertices.cycles import count
from pyscf_ipu.ipu.vertices.short_code import SHORT
from pyscf_ipu.numerics.boys import PLAIN
from pyscf_ipu.numerics.hermite import hermite_coulomb
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.tiles import subroutine

KIB = 1024


def coulomb(order, arithmetic):
    def fn(alpha, prefactor, *r):
        return hermite_coulomb(order, alpha, prefactor, list(r), COULOMB, arithmetic)

    return fn


def operands(*shape):
    rng = np.random.default_rng(7)
    return rng.uniform(0.1, 3.0, size=(5, *shape)).astype(np.float32)


@pytest.mark.parametrize("order", [0, 1, 4, 8])
def test_the_integrals_are_the_same(order):
    expected, found = (jax.jit(coulomb(order, x))(*operands(9)) for x in (PLAIN, SHORT))
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6 * np.abs(expected).max())


def test_orders_share_the_code_of_a_degree():
    """Four orders: the recursion is there for degree 1 and all others, and not for each."""
    costs = [
        count(jax.make_jaxpr(coulomb(order, SHORT))(*operands(9)).jaxpr) for order in (3, 4, 6, 8)
    ]
    degrees = {key for c in costs for key in c.routines}
    assert {name for name, _ in degrees} == {"subroutine__degree"}
    assert len(degrees) == 2
    assert costs[-1].equations < 170
    plain = count(jax.make_jaxpr(coulomb(8, PLAIN))(*operands(9)).jaxpr)
    assert plain.equations > 2 * costs[-1].equations
    assert costs[-1].vector_cycles == pytest.approx(plain.vector_cycles, rel=0.01)


def test_lengths_and_strides_are_arguments_of_a_code_and_its_operands_are_not():
    def keys(fn, *args):
        return set(count(jax.make_jaxpr(subroutine(fn))(*args).jaxpr).routines)

    def first(x, y):
        return jnp.exp(x) * y - x

    def other(x, y):
        return jnp.exp(x) * y - y

    other.__name__ = first.__name__
    x, y = np.ones((3, 1), np.float32), np.ones((3, 5), np.float32)
    assert keys(first, y, y) == keys(first, x, y) == keys(first, x, y[0])
    assert keys(first, y, y) != keys(other, y, y)


@pytest.mark.parametrize(
    ("basis", "classes", "least", "most", "orders"),
    [("sto-3g", 5, 22, 36, 4), pytest.param("6-31g*", 35, 50, 75, 8, marks=pytest.mark.long)],
)
def test_the_code_of_all_quartets_leaves_room_for_an_scf(basis, classes, least, most, orders):
    """One tile has all classes of an atom with s and p functions, or with d functions too."""
    atom, settings = Molecule([8], [[0.1, 0.2, 0.3]]), Settings(basis=basis, grid_level=0)
    shape = shape_of(atom.numbers, basis, False, 0, pad=False)
    arrays = tables.shape_tables(shape, settings), conformer.conformer(atom, shape, settings)
    plan, tiles = tile_plan(shape), family_plan(shape, 1)

    def integrals(table, where):
        atoms = gather_atoms(plan, table, where, np.float32)
        return [x.array for x in family_supermatrix(tiles, atoms, Interaction(0.2))]

    found = memory_of(integrals, BOW, 1, *arrays)
    assert len(tiles.classes) == classes
    assert least * KIB < found.code.max() < most * KIB  # an SCF's other code takes 135 KiB
    assert code_bytes(shape) == (88 + orders * 16) * KIB
