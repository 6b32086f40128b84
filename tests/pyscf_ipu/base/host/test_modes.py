"""Programs run whatever mode JAX is in, and never in a child that would wait for ever."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pyscf_ipu as pi
from pyscf_ipu.base.host.modes import lowered_plainly, plain_jax

WATER = pi.Molecule([8, 1, 1], [[0, 0, 0], [0, 0, 1.8], [0, 1.8, 0]])


def energy():
    return float(pi.rks(WATER, xc="hf").energy)


@pytest.fixture(scope="module")
def expected():
    return energy()


@pytest.mark.parametrize(
    "mode", [lambda: jax.disable_jit(), lambda: jax.transfer_guard("disallow")]
)
def test_modes_of_the_caller_do_not_matter(expected, mode):
    with mode():
        assert energy() == expected
        pi.clear()
        assert energy() == expected  # and while it compiles or loads


def test_in_somebodys_jit_numbers_are_computed_at_once(expected):
    pi.clear()
    assert float(jax.jit(energy)()) == pytest.approx(expected, abs=1e-5)


def test_traced_positions_are_refused_in_our_words():
    with pytest.raises(pi.UsageError, match=r"traced by JAX.*energy_function"):
        jax.jit(lambda x: pi.rks(pi.Molecule(WATER.numbers, x), xc="hf").energy)(WATER.positions)


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
import pyscf_ipu as pi
helium = pi.Molecule([2], [[0, 0, 0]])
if sys.argv[1] == "after":
    pi.rks(helium, xc="hf")
if not (child := os.fork()):
    try:
        print(float(pi.rks(helium, xc="hf").energy), flush=True)
    except pi.UsageError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("after", "do not survive a fork: start processes with"),
        pytest.param("before", "-2.", marks=pytest.mark.long),
    ],
)
def test_a_forked_child_computes_or_says_why_not(when, words):
    done = subprocess.run(
        [sys.executable, "-c", FORK, when], capture_output=True, text=True, timeout=120
    )
    assert words in done.stdout, done.stderr


def test_constants_are_not_computed_while_a_program_is_traced():
    """Each would be a small program of its own; together they took as long as the program."""

    def counted(x):
        return x + jnp.arange(3)

    with plain_jax():
        assert "iota" not in jax.jit(counted).lower(np.int32(1)).as_text()
        assert "iota" in lowered_plainly(counted, (np.int32(1),)).as_text()


def test_a_program_keeps_the_width_of_floats():
    with jax.enable_x64(True):
        assert "f64" in lowered_plainly(jnp.sin, (np.float64(1.0),)).as_text()
    assert "f64" not in lowered_plainly(jnp.sin, (np.float64(1.0),)).as_text()


def test_an_error_while_tracing_is_the_callers():
    with pytest.raises(TypeError, match="sin"):
        lowered_plainly(jnp.sin, ("water",))
