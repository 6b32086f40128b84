import dataclasses

import jax
import numpy as np
import pytest
from oracle import QUICK

from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.base.host.backend import backend
from pyscf_ipu.kohn_sham.batch import sequential, side_by_side
from pyscf_ipu.kohn_sham.program import energies
from pyscf_ipu.machines.gpu_machine import GPU
from pyscf_ipu.numerics.two_words import to_float64
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.solver import batches
from pyscf_ipu.solver import solver as solver_module
from pyscf_ipu.solver.platform import PLATFORMS, platform

HYDROGEN = Molecule([1, 1], [[0, 0, 0], [0, 0, 1.4]])


@pytest.mark.long
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_batch_by_the_kernels_equals_the_cpu(precision):
    level = Settings(xc="b3lyp", precision=precision, grid_level=0)
    shape = shape_of(HYDROGEN.numbers, level.basis, level.cart, level.grid_level)
    mols = [HYDROGEN, Molecule([1, 1], 1.3 * HYDROGEN.positions)]
    with level.numerics.scope():
        batch = conformer.batch(mols, shape, level, 2)
        program = jax.jit(side_by_side(energies(shape, level, GPU)), compiler_options=QUICK)
        found = program(tables.shape_tables(shape, level), batch, np.int32(2))
    assert np.all(np.asarray(found.converged))
    energy = sum(to_float64(part) for part in found.terms)
    want = rks(mols, xc="b3lyp", precision=precision, grid_level=0).energy
    np.testing.assert_allclose(energy, want, atol=1e-6 if precision == "float32" else 1e-10)


def test_a_device_that_is_in_effect_decides_where_kernels_run():
    with jax.default_device(jax.devices("cpu")[0]):
        assert backend() == "cpu"
    with jax.default_device("cpu"):
        assert platform() is PLATFORMS["cpu"]


def test_there_is_a_driver_for_each_kind_of_device():
    assert PLATFORMS["cpu"].driver is sequential
    assert PLATFORMS["gpu"].driver is side_by_side


def test_accelerators_cut_lists_by_whole_batches(monkeypatch):
    """Padding is computed in vain there: two threads must not make two padded calls of one."""
    gpu = dataclasses.replace(PLATFORMS["gpu"], room=lambda: 2**36)
    monkeypatch.setattr(solver_module, "platform", lambda: gpu)
    solver = Solver(Settings(grid_level=0))
    shape = solver.shape(HYDROGEN)
    size = solver.batch_size(shape)
    assert size == 512
    found = batches._batches({(shape, False): list(range(size + 3))}, solver, 2)
    assert [len(batch.places) for batch in found] == [size, 3]
    assert [gpu.call_size(n, size) for n in (1, 2, 64, 65, 512)] == [1, 64, 64, 512, 512]
    fits = dataclasses.replace(
        gpu, room=lambda: round(gpu.call_bytes(shape, solver.settings, 100) / 0.8)
    )
    assert fits.batch_size(shape, solver.settings) == 64
