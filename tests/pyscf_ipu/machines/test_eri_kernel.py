import jax
import numpy as np
import pytest

from pyscf_ipu import Molecule, Settings
from pyscf_ipu.integrals.electron_repulsion import class_blocks, eri_side
from pyscf_ipu.integrals.eri_matrix import arrange
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.machines.eri_kernel import LANES, eri_class_pair
from pyscf_ipu.machines.rounding import divided, inverse_root
from pyscf_ipu.numerics.boys import Arithmetic, boys, boys_reference
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan

LEVEL = Settings(grid_level=0)
FORMALDEHYDE = Molecule(
    [6, 8, 1, 1], [[0, 0, -1.14], [0, 0, 1.14], [0, 1.77, -2.26], [0, -1.77, -2.26]]
)


HYDROGEN = Molecule([1, 1], [[0, 0, 0], [0, 0, 1.4]])


@pytest.fixture(scope="module")
def sides():
    return sides_of(FORMALDEHYDE, LEVEL)


def sides_of(molecule, level):
    shape = shape_of(molecule.numbers, level.basis, level.cart, level.grid_level)
    plan = tile_plan(shape)
    class_tables = jax.device_put(tables.shape_tables(shape, level))
    mol = conformer.conformer(molecule, shape, level)

    def compute(mol):
        return [eri_side(d) for d in pair_strips(gather_atoms(plan, class_tables, mol, np.float32))]

    return plan, jax.jit(compute)(mol)


@pytest.mark.slow
@pytest.mark.parametrize(
    "classes",
    # Four p shells, as in the third test below, whose program is smaller.
    [(0, 0), (1, 1), (1, 2), pytest.param((2, 2), marks=pytest.mark.long)],
)
def test_a_class_pair_equals_the_portable_blocks(sides, classes):
    check(*sides, classes)


@pytest.mark.slow
def test_range_separation(sides):
    check(*sides, (1, 1), Interaction(0.5, 0.6, 0.3))


@pytest.mark.slow
def test_every_product_of_p_shells_is_computed():
    """Nine products are no multiple of those that a program computes."""
    plan, data = sides_of(HYDROGEN, Settings(basis="6-31g**", grid_level=0))
    last = len(plan.strips) - 1
    assert plan.strips[last].n_products == 9
    check(plan, data, (last, last))


def check(plan, data, classes, of=COULOMB):
    block = next(b for b in plan.blocks if (b.bra, b.ket) == classes)
    bra, ket = plan.strips[block.bra], plan.strips[block.ket]
    orders = bra.pair_class.order, ket.pair_class.order
    want = arrange(bra, ket, block, class_blocks(plan, block, data, of).array)
    same = block.bra == block.ket
    given = [data[i] for i in classes]
    got = jax.jit(lambda a, b: eri_class_pair(orders, a, b, same, of))(*given)
    assert got.shape == want.shape
    assert np.abs(np.asarray(want)).max() > 0.1
    np.testing.assert_allclose(got, want, rtol=3e-6, atol=1e-6)


def test_the_pairs_of_a_class_need_more_than_one_program(sides):
    """Else the blocks below the diagonal, which are copies, were not tested."""
    plan, _ = sides
    assert plan.strips[0].n_strips * plan.strips[0].chunks_per_strip > LANES


@pytest.mark.parametrize("order", [0, 2, 4])
def test_the_boys_function_is_right_to_a_few_roundings(order):
    t = np.geomspace(1e-6, 1e4, 4001).astype(np.float32)
    arithmetic = Arithmetic(divided, inverse_root)
    for n, found in enumerate(jax.jit(lambda t: boys(order, t, arithmetic))(t)):
        want = boys_reference(n, t)
        assert np.abs(found / want - 1).max() < 4e-6
