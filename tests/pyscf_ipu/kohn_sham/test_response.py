"""The derivative of the Fock matrix along a change of the density, against PySCF's response."""

import jax
import numpy as np
import pytest
from oracle import QUICK, WATER, ground_state

from pyscf_ipu import Molecule, Settings
from pyscf_ipu.kohn_sham.hamiltonian import hamiltonian
from pyscf_ipu.shapes import conformer as shapes_conformer
from pyscf_ipu.shapes import tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.xc.registry import functional

pytestmark = pytest.mark.slow

CENTRED = Molecule(WATER.numbers, WATER.positions - WATER.positions.mean(0))


@pytest.mark.parametrize(
    ("xc", "precision", "bound"),
    [
        ("b3lyp", "float64", 1e-6),
        ("b3lyp", "float32", 1e-4),
        pytest.param("lda", "float64", 1e-6, marks=pytest.mark.long),
        pytest.param("pbe", "float64", 1e-6, marks=pytest.mark.long),
        ("hf", "float64", 1e-9),
        pytest.param("tpss", "float64", 1e-6, marks=pytest.mark.long),
        pytest.param("r2scan", "float32", 1e-3, marks=pytest.mark.long),
    ],
)
def test_response(xc, precision, bound):
    settings = Settings(xc=xc, precision=precision, grid_level=0)
    dtype = settings.numerics.scf_dtype
    field = ground_state(CENTRED, xc=xc)
    change = np.random.default_rng(2).normal(size=field.mo_coeff.shape)
    change = 0.1 * (change + change.T)
    expected = field.gen_response(field.mo_coeff, field.mo_occ, hermi=1)(change)
    shape = shape_of(CENTRED.numbers, settings.basis, settings.cart, 0)
    order = shapes_conformer.ao_order(CENTRED, shape, settings)

    def slots(matrix):
        out = np.zeros((shape.n_ao, shape.n_ao), dtype)
        out[np.ix_(order, order)] = matrix
        return out

    def run(class_tables, conformer, density, change):
        atoms = gather_atoms(tile_plan(shape), class_tables, conformer, dtype)
        return hamiltonian(atoms, functional(xc)).response(density)(change)

    with settings.numerics.scope():
        mol = shapes_conformer.conformer(CENTRED, shape, settings)
        arrays = (tables.shape_tables(shape, settings), mol, slots(field.make_rdm1()))
        program = jax.jit(run).lower(*arrays, slots(change)).compile(QUICK)
        found = np.asarray(program(*arrays, slots(change)), np.float64)
    assert np.abs(found[np.ix_(order, order)] - expected).max() < bound
