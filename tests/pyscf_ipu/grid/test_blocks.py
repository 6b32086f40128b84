"""AO values that are made again piece by piece, against those that are kept."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from oracle import QUICK, WATER

from pyscf_ipu import Settings
from pyscf_ipu.codelets import native_in_use
from pyscf_ipu.grid import blocks
from pyscf_ipu.grid.xc_matrix import PORTABLE, exchange_correlation
from pyscf_ipu.grid.xc_response import exchange_correlation_response
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.xc.registry import functional
from pyscf_ipu.xc.semilocal.functionals import Term


def of_everything(v):
    """An energy of density, gradient and kinetic energy density that compiles in no time."""
    return -v.cbrt * (1.0 + 0.1 * v.x2 / (1.0 + v.x2) + 0.01 * v.kinetic)


@pytest.mark.slow
def test_energy_matrix_and_response_are_the_same(monkeypatch):
    """A compiled function returns either kind of blocks, and another one takes them; so for blocks
    of a given number, with all their points at a time or two thirds less."""
    used = replace(functional("tpss"), terms=(Term(0.7, of_everything, "correlation"),))
    kinds = {2**30: blocks.GridBlocks, 1000: blocks.RemadeBlocks}
    settings = Settings(precision="float64", grid_level=0, basis="sto-3g", xc="tpss")
    shape = shape_of(WATER.numbers, settings.basis, False, 0)
    plan = tile_plan(shape)
    density = np.random.default_rng(0).normal(size=(shape.n_ao, shape.n_ao)) / 10
    density = density @ density.T
    change = np.cos(density)

    def run(limit, *cut):
        monkeypatch.setattr(blocks, "KEPT_BYTES", {native_in_use(): limit})

        def made(class_tables, mol):
            atoms = gather_atoms(plan, class_tables, mol, np.float64)
            return blocks.grid_blocks(atoms, used, *cut)

        def everything(grid, density, change):
            energy, matrix = exchange_correlation(used, grid, density, PORTABLE)
            response = exchange_correlation_response(used, grid, density, PORTABLE)
            return energy.value(), matrix, response(change), grid.weights.sum()

        with settings.numerics.scope():
            arrays = (
                tables.shape_tables(shape, settings),
                conformer.conformer(WATER, shape, settings),
            )
            grid = jax.jit(made, compiler_options=QUICK)(*arrays)
            assert isinstance(grid, kinds[limit] if len(cut) < 2 else blocks.RemadeBlocks)
            compiled = jax.jit(everything, compiler_options=QUICK)
            return [np.asarray(x) for x in compiled(grid, density, change)]

    kept, *remade = run(2**30), run(1000), run(2**30, 100, 3)
    assert abs(kept[0]) > 0.1
    assert np.abs(kept[2]).max() > 1e-3
    for found in remade:
        for a, b in zip(kept, found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_small_molecules_keep_them_and_large_ones_do_not():
    def kind(numbers, **level):
        settings = Settings(**level)
        shape = shape_of(numbers, settings.basis, settings.cart, settings.grid_level)
        plan = tile_plan(shape)

        def made(class_tables, mol):
            atoms = gather_atoms(plan, class_tables, mol, np.float32)
            found = blocks.grid_blocks(atoms, functional("b3lyp"))
            kinds.append((type(found), found.weights.shape[0]))
            return found.weights

        def first(shape, settings):
            return jax.tree.map(lambda x: x[0], conformer.empty_batch(shape, settings, 1))

        kinds = []
        arrays = tables.shape_tables(shape, settings), first(shape, settings)
        jax.eval_shape(made, *arrays)
        return kinds[0]

    assert kind([6] * 9 + [1] * 20, basis="sto-3g", grid_level=0)[0] is blocks.GridBlocks
    remade, count = kind([6] * 9 + [1] * 20, basis="6-31g*", grid_level=4)
    assert remade is blocks.RemadeBlocks
    size = blocks.SCREENED_POINTS if native_in_use() else blocks.BLOCK_POINTS
    assert count % (blocks.PIECE_POINTS[native_in_use()] // size) == 0
