import jax
import numpy as np
import pytest

from pyscf_ipu import Molecule, Settings, rks
from pyscf_ipu.gpu import GPU
from pyscf_ipu.kohn_sham.batch import side_by_side
from pyscf_ipu.kohn_sham.program import energies
from pyscf_ipu.numerics.two_words import to_float64
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.shape import shape_of

HYDROGEN = Molecule([1, 1], [[0, 0, 0], [0, 0, 1.4]])


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_batch_by_the_kernels_equals_the_cpu(precision):
    level = Settings(xc="b3lyp", precision=precision, grid_level=0)
    shape = shape_of(HYDROGEN.numbers, level.basis, level.cart, level.grid_level)
    mols = [HYDROGEN, Molecule([1, 1], 1.3 * HYDROGEN.positions)]
    with level.numerics.scope():
        batch = conformer.batch(mols, shape, level, 2)
        program = jax.jit(side_by_side(energies(shape, level, GPU)))
        found = program(tables.shape_tables(shape, level), batch, np.int32(2))
    assert np.all(np.asarray(found.converged))
    energy = sum(to_float64(part) for part in found.terms)
    want = rks(mols, xc="b3lyp", precision=precision, grid_level=0).energy
    np.testing.assert_allclose(energy, want, atol=1e-6 if precision == "float32" else 1e-10)
