"""The engine's integrals as matrices: those of PySCF, and JAX differentiates them."""

import jax
import numpy as np
import pytest
from oracle import molecule

from pyscf_ipu import Settings
from pyscf_ipu.interop import integrals

WATER = molecule("O 0.1 0 0; H 0 0 1; H 0 0.9 0.2")
LEVEL = Settings(grid_level=0, precision="float64")
NAMES = {"overlap": "int1e_ovlp", "kinetic": "int1e_kin", "nuclear": "int1e_nuc"}
NAMES["repulsion"] = "int2e"


def pyscf_integrals(mol, positions):
    mole = LEVEL.pyscf_mole(mol.numbers, positions)
    return {name: mole.intor(theirs) for name, theirs in NAMES.items()}


def test_they_are_those_of_pyscf():
    with jax.enable_x64(True):
        ours = integrals(WATER, LEVEL)(jax.numpy.asarray(WATER.positions))
    for name, theirs in pyscf_integrals(WATER, WATER.positions).items():
        np.testing.assert_allclose(getattr(ours, name), theirs, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_they_can_be_differentiated(name):
    hydrogen = molecule("H 0 0 0.1; H 0 0 0.8")
    weights = np.random.default_rng(0).normal(size=(2,) * (4 if name == "repulsion" else 2))
    step = np.zeros((2, 3))
    step[1, 2] = 1e-4
    ahead, back = (pyscf_integrals(hydrogen, hydrogen.positions + s)[name] for s in (step, -step))
    with jax.enable_x64(True):
        at = integrals(hydrogen, LEVEL)

        def weighted(positions):
            return (getattr(at(positions), name) * weights).sum()

        slope = jax.grad(weighted)(jax.numpy.asarray(hydrogen.positions))
    assert slope[1, 2] == pytest.approx(((ahead - back) * weights).sum() / 2e-4, abs=1e-7)
