"""The primitive behind every codelet, and the switch between native and portable."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import NATIVE
from pyscf import dft, gto

from pyscf_ipu.codelets import describe, library
from pyscf_ipu.codelets.loading import INSTRUCTION_SETS
from pyscf_ipu.integrals.supermatrix import repulsion, repulsion_vertex

HALF = np.random.default_rng(0).normal(size=55).astype(np.float32)
D = np.random.default_rng(1).normal(size=10).astype(np.float32)


def energy(d):
    return repulsion(jnp.asarray(HALF), d)[1].value()


def portable_energy(d):
    high, low = repulsion_vertex(jnp.asarray(HALF), d)[1]
    return high + low


def test_a_codelet_has_the_derivative_of_its_portable_form():
    expected = jax.jit(jax.grad(portable_energy))(D)
    np.testing.assert_allclose(jax.jit(jax.grad(energy))(D), expected, rtol=1e-6)


def test_a_batch_of_codelets_is_a_batch_of_portable_forms():
    batch = np.stack([D, 2 * D])
    found, expected = (jax.jit(jax.vmap(x))(batch) for x in (energy, portable_energy))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_outside_jit():
    assert float(energy(jnp.asarray(D))) == pytest.approx(
        float(jax.jit(portable_energy)(D)), rel=1e-6
    )


@NATIVE
def test_the_compiled_program_calls_the_native_function():
    text = jax.jit(energy).lower(D).as_text()
    assert "pyscf_ipu_repulsion" in text
    assert library().instruction_set in describe()


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


MONOXIDE = """
import pyscf_ipu as pi
from pyscf_ipu.codelets import describe
mol = pi.Molecule([6, 8], [[0, 0, 0], [0.3, 1.4, 1.6]])
found = pi.rks(mol, basis="6-31g*", xc="pbe", grid_level=0, precision="float64")
print(describe())
print(repr(float(found.energy)))
"""


@pytest.mark.long  # every other test uses the newest that the machine has
@NATIVE
@pytest.mark.parametrize("name", INSTRUCTION_SETS)
def test_every_instruction_set_gives_pyscf_s_energy(name):
    """d shells and float64: lanes and rows that do not come out even, on each vector width."""
    found = run(MONOXIDE, PYSCF_IPU_CODELETS=name)
    if found.returncode and "was not compiled" in found.stderr:
        pytest.skip(f"{name} was not compiled, or this machine lacks it")
    assert found.returncode == 0, found.stderr
    said, energy = found.stdout.splitlines()
    assert f"native codelets ({name})" in said
    mole = gto.M(atom="C 0 0 0; O 0.3 1.4 1.6", unit="Bohr", basis="6-31g*", verbose=0)
    field = dft.RKS(mole, xc="pbe")
    field.grids.level = 0
    assert float(energy) == pytest.approx(field.kernel(), abs=1e-7)


@NATIVE
def test_a_library_of_another_processor_says_so():
    """As on a node of a cluster that is older than the one where it was compiled."""
    code = (
        "import dataclasses, pyscf_ipu.codelets.loading as l\n"
        "made = l.library()\n"
        "l.library = lambda: dataclasses.replace(made, instruction_set='sse', processor='avx9')\n"
        "l.warn_if_missing()"
    )
    assert "sse is in use, avx9 would be faster" in run(code).stderr


def test_a_library_of_other_sources_is_not_used():
    """Its functions might read their arguments differently."""
    code = (
        "import pyscf_ipu.codelets.loading as l\n"
        "l.source_hash = lambda: 'another'\n"
        "print(l.library(), l.describe())"
    )
    found = run(code)
    assert found.stdout.startswith("None portable")
    if library() is not None:
        assert "built from other sources" in found.stdout


def test_codelets_can_be_switched_off():
    code = "from pyscf_ipu.codelets import describe, library; print(library()); print(describe())"
    found = run(code, PYSCF_IPU_CODELETS="off")
    assert found.stdout.startswith("None\nportable")
    wrong = run(code, PYSCF_IPU_CODELETS="maybe")
    assert wrong.returncode != 0
    assert "set it to one of on, off" in wrong.stderr


def test_without_the_library_it_is_said_once():
    code = (
        "import warnings, pathlib, pyscf_ipu.codelets.loading as l\n"
        "l._candidates = list\n"
        "warnings.simplefilter('always')\n"
        "l.warn_if_missing(); l.warn_if_missing(); print(l.describe())"
    )
    found = run(code)
    assert found.stderr.count("are not in use (not built") == 1
    assert "install a C++ compiler" in found.stdout
