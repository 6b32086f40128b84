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
from pyscf_ipu.nanodft.integrals import becke_grid, engine_integrals, mole_of

MOLECULE = molecule("C 0.1 -0.2 0.3; O 0.3 0.4 1.2")


# Spherical d functions are in `test_d_shells_end_to_end`, too.
SPHERICAL = pytest.param(("def2-tzvp", False), marks=pytest.mark.long)


@pytest.fixture(scope="module", params=[SPHERICAL, (QM9_BASIS, MIXED)], ids=str)
def found(request):
    """Ours, PySCF's molecule, and the AOs in terms of its functions."""
    basis, cart = request.param
    settings = Settings(basis=basis, xc="hf", grid_level=0, precision="float64", cart=cart)
    mole = mole_of(MOLECULE, settings)
    with jax.enable_x64(True):
        positions = jax.numpy.asarray(MOLECULE.positions)
        ours = engine_integrals(MOLECULE, settings)(positions)
        local, owner, _ = becke_grid(MOLECULE, settings.grid, positions)
    points = np.asarray(local) + MOLECULE.positions[owner]
    functions = mixed_functions(mole) if cart == MIXED else np.eye(mole.nao)
    return ours, mole, functions, points


@pytest.mark.parametrize("name", ["overlap", "kinetic", "nuclear"])
def test_one_electron_integrals(found, name):
    ours, mole, functions, _ = found
    short = {"overlap": "ovlp", "kinetic": "kin", "nuclear": "nuc"}[name]
    theirs = functions.T @ mole.intor(f"int1e_{short}") @ functions
    np.testing.assert_allclose(getattr(ours, name), theirs, rtol=0, atol=1e-10)


def test_electron_repulsion_integrals(found):
    ours, mole, functions, _ = found
    theirs = mole.intor("int2e")
    if len(functions) > functions.shape[1]:
        for _ in range(4):  # each axis in turn
            theirs = np.tensordot(theirs, functions, ((0,), (0,)))
    np.testing.assert_allclose(ours.repulsion, theirs, rtol=0, atol=1e-10)


def test_values_and_gradients_on_points(found):
    ours, mole, functions, points = found
    theirs = eval_ao(mole, points, deriv=1) @ functions
    np.testing.assert_allclose(ours.ao, theirs.transpose(0, 2, 1), rtol=1e-12, atol=1e-11)
