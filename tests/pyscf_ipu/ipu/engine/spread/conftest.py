import jax
import numpy as np
import pytest
from oracle import WATER

from pyscf_ipu import Settings
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan


@pytest.fixture(scope="package")
def water():
    """The atoms of water in STO-3G."""
    settings = Settings(grid_level=0)
    shape = shape_of(WATER.numbers, settings.basis, False, 0)
    plan = tile_plan(shape)
    arrays = tables.shape_tables(shape, settings), conformer.conformer(WATER, shape, settings)
    return jax.jit(lambda t, c: gather_atoms(plan, t, c, np.float32))(*arrays)
