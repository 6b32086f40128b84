"""f shells: every integral, and the AOs on points, of one molecule against PySCF in float64."""

import jax
import numpy as np
import pytest
from oracle import molecule
from pyscf.dft.numint import eval_ao

from pyscf_ipu import Settings
from pyscf_ipu.elements.basis_sets import QM9_BASIS
from pyscf_ipu.elements.cartesian import MIXED
from pyscf_ipu.elements.mixed import mixed_functions
from pyscf_ipu.grid.ao_values import ao_values
from pyscf_ipu.interop import integrals
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.conformer import ao_order, conformer, slot_order
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tables import shape_tables
from pyscf_ipu.shapes.tile_plan import tile_plan

MOLECULE = molecule("C 0.1 -0.2 0.3; O 0.3 0.4 1.2")


# Spherical d functions are in `test_d_shells_end_to_end`, too.
SPHERICAL = pytest.param(("def2-tzvp", False), marks=pytest.mark.long)


@pytest.fixture(scope="module", params=[SPHERICAL, (QM9_BASIS, MIXED)], ids=str)
def found(request):
    """The level, our integrals, PySCF's molecule, and the AOs in terms of its functions."""
    basis, cart = request.param
    settings = Settings(basis=basis, xc="hf", grid_level=0, precision="float64", cart=cart)
    mole = settings.pyscf_mole(MOLECULE.numbers, MOLECULE.positions)
    with jax.enable_x64(True):
        ours = integrals(MOLECULE, settings)(jax.numpy.asarray(MOLECULE.positions))
    functions = mixed_functions(mole) if cart == MIXED else np.eye(mole.nao)
    return settings, ours, mole, functions


def aos_at(settings, points):
    """Values and gradients of our AOs at points, which belong to the atom nearest to them."""
    shape = shape_of(MOLECULE.numbers, settings.basis, settings.cart, grid=settings.grid, pad=False)
    plan, atoms = tile_plan(shape), slot_order(MOLECULE, shape, settings)
    nearest = np.linalg.norm(points[:, None] - MOLECULE.positions, axis=-1).argmin(1)
    with jax.enable_x64(True):
        local = jax.numpy.asarray(points - MOLECULE.positions[nearest])
        centres = Pair(*map(jax.numpy.asarray, (MOLECULE.positions[atoms], np.zeros((2, 3)))))
        data = conformer(MOLECULE, shape, settings)._replace(positions=centres)
        shells = gather_atoms(plan, shape_tables(shape, settings), data, dtype=np.float64).shells
        owner = centres.at(np.argsort(atoms).astype(np.int32)[nearest])
        values = ao_values(plan.layout, shells, local, owner=owner, gradient=True)
    return np.asarray(values)[:, ao_order(MOLECULE, shape, settings)]


@pytest.mark.parametrize("name", ["overlap", "kinetic", "nuclear"])
def test_one_electron_integrals(found, name):
    _, ours, mole, functions = found
    short = {"overlap": "ovlp", "kinetic": "kin", "nuclear": "nuc"}[name]
    theirs = functions.T @ mole.intor(f"int1e_{short}") @ functions
    np.testing.assert_allclose(getattr(ours, name), theirs, rtol=0, atol=1e-10)


def test_electron_repulsion_integrals(found):
    _, ours, mole, functions = found
    theirs = mole.intor("int2e")
    if len(functions) > functions.shape[1]:
        for _ in range(4):  # each axis in turn
            theirs = np.tensordot(theirs, functions, ((0,), (0,)))
    np.testing.assert_allclose(ours.repulsion, theirs, rtol=0, atol=1e-10)


def test_values_and_gradients_on_points(found):
    settings, _, mole, functions = found
    points = np.random.default_rng(0).normal(scale=2.0, size=(500, 3))
    theirs = eval_ao(mole, points, deriv=1) @ functions
    ours = aos_at(settings, points)
    np.testing.assert_allclose(ours, theirs.transpose(0, 2, 1), rtol=1e-12, atol=1e-11)
