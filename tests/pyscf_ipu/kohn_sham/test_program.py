"""What a compiled program consists of, read off the jaxpr and the compiled code."""

import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend import core
from oracle import HYDROGEN, METHYL_CHLORIDE, QUICK, WATER

from pyscf_ipu import Settings, Solver
from pyscf_ipu.codelets import codelet_p
from pyscf_ipu.gradient import gradients
from pyscf_ipu.grid.xc_matrix import xc_functional_vertex
from pyscf_ipu.kohn_sham.batch import empty_states, sequential, side_by_side
from pyscf_ipu.kohn_sham.program import energies, lowest_energies
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.xc.registry import functional
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS


@functools.cache
def trace(driver=sequential, mol=WATER, **changes):
    """The jaxpr of a batch driver, nothing compiled."""
    settings = Settings(**{"grid_level": 0, **changes})
    shape = Solver(settings).shape(mol)
    with settings.numerics.scope():
        arrays = tables.shape_tables(shape, settings), conformer.empty_batch(shape, settings, 2)
        return jax.make_jaxpr(driver(energies(shape, settings)))(*arrays, np.int32(2))


def inner_jaxprs(value):
    """Jaxprs inside an equation's parameter."""
    if isinstance(value, core.ClosedJaxpr):
        yield value.jaxpr
    elif isinstance(value, core.Jaxpr):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from inner_jaxprs(item)


def equations(jaxpr):
    """All equations, those of loops, branches, vertices and portable codelets included."""
    for equation in jaxpr.eqns:
        yield equation
        if equation.primitive is codelet_p:
            operands = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
            with jax.enable_x64(any(x.dtype == np.float64 for x in operands)):
                portable = jax.make_jaxpr(equation.params["portable"])(*operands)
            yield from equations(portable.jaxpr)
        for value in equation.params.values():
            for inner in inner_jaxprs(value):
                yield from equations(inner)


@functools.cache
def equations_of(**level):
    """All equations of a traced program; each portable form in it is traced once."""
    return list(equations(trace(**level).jaxpr))


def dtypes(found):
    """Those of the variables of some equations."""
    variables = [v for e in found for v in (*e.invars, *e.outvars)]
    return {np.dtype(v.aval.dtype) for v in variables if hasattr(v.aval, "dtype")}


MIXED = {"xc": "hf", "precision": "mixed", "mol": HYDROGEN}
B3LYP = {"xc": "b3lyp", "mol": METHYL_CHLORIDE}
PBE0_SIDE_BY_SIDE = {"xc": "pbe0", "driver": side_by_side, "mol": HYDROGEN}
LEVELS = [
    B3LYP,
    pytest.param({"xc": "pbe", "basis": "6-31g*"}, marks=pytest.mark.long),
    MIXED,
    {"xc": "lda", "precision": "float64", "basis": "cc-pvdz", "mol": HYDROGEN},
]


@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_every_dot_product_has_the_highest_precision(level):
    """A GPU would otherwise be free to use TF32, with three decimal digits."""
    found = [e for e in equations_of(**level) if e.primitive is lax.dot_general_p]
    assert len(found) > 10
    highest = (lax.Precision.HIGHEST, lax.Precision.HIGHEST)
    for equation in found:
        assert equation.params["precision"] == highest, equation


@pytest.mark.parametrize("make", [energies, lowest_energies])
def test_lapack_sees_one_spin_at_a_time(make):
    """Batches of it wait for threads of the pool that they run in: two of them hung for ever."""
    settings = Settings(grid_level=0)
    shape = Solver(settings).shape(HYDROGEN)
    arrays = (
        tables.shape_tables(shape, settings),
        conformer.empty_batch(shape, settings, 2, open_shell=True),
    )
    jaxpr = jax.make_jaxpr(sequential(make(shape, settings)))(*arrays, np.int32(2)).jaxpr
    names = {"eigh", "cholesky", "triangular_solve", "lu", "householder_product"}
    found = [e for e in equations(jaxpr) if e.primitive.name in names]
    assert any(e.primitive.name == "eigh" for e in found)
    for equation in found:
        assert equation.invars[0].aval.ndim == 2, equation


@pytest.mark.slow
def test_derivatives_keep_to_float32_and_the_highest_precision():
    settings = Settings(grid_level=0)
    shape = Solver(settings).shape(WATER)
    arrays = tables.shape_tables(shape, settings), empty_states(shape, settings, 2)
    driver = sequential(gradients(shape, settings))
    jaxpr = jax.make_jaxpr(driver)(*arrays, np.int32(2)).jaxpr
    found = list(equations(jaxpr))
    products = [e for e in found if e.primitive is lax.dot_general_p]
    assert len(products) > 10
    for equation in products:
        assert equation.params["precision"] == (lax.Precision.HIGHEST,) * 2, equation
    assert not dtypes(found) & {np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.complex64)}


@pytest.mark.parametrize("level", [B3LYP, PBE0_SIDE_BY_SIDE], ids=["b3lyp", "side by side"])
def test_float32_holds_no_float64(level):
    found = dtypes(equations_of(**level))
    assert np.dtype(np.float32) in found
    assert not found & {np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.complex64)}


@pytest.mark.slow
def test_mixed_refines_in_float64():
    found = dtypes(equations_of(**MIXED))
    assert {np.dtype(np.float32), np.dtype(np.float64)} <= found


def calls_of_the_host(names):
    return {n for n in names if "callback" in n or n in ("infeed", "outfeed", "debug_print")}


@pytest.mark.parametrize(
    "level",
    [
        MIXED,
        {"xc": "wb97x", "mol": HYDROGEN},
        {"xc": "r2scan", "mol": HYDROGEN},
    ],
    ids=str,
)
def test_no_step_calls_the_host(level):
    names = {e.primitive.name for e in equations_of(**level)}
    assert "tile_map" in names
    assert not calls_of_the_host(names)


@pytest.mark.parametrize("xc", [name for name in FUNCTIONALS if name != "hf"])
def test_no_functional_calls_the_host(xc):
    vertex = partial(xc_functional_vertex, functional(xc))
    moments = jnp.ones((5, 8), jnp.float32)[: 4 + functional(xc).needs_tau]
    names = {e.primitive.name for e in equations(jax.make_jaxpr(vertex)(moments, moments[0]).jaxpr)}
    assert "mul" in names
    assert not calls_of_the_host(names)


def test_the_compiled_program_calls_no_python():
    solver = Solver(Settings(xc="lda", grid_level=0))
    shape = solver.shape(HYDROGEN)
    solver.compile(shape)
    (program,) = solver._programs.values()
    text = program.as_text()
    assert "custom-call" in text  # LAPACK, so the words below would be seen
    assert "callback" not in text


def test_the_compute_sets_have_names():
    found = equations_of(**B3LYP)
    names = {e.params["name"] for e in found if e.primitive.name == "tile_map"}
    assert {"eri_ss_ss", "ao_values", "xc_density", "xc_functional", "xc_potential"} <= names
    assert any(name.startswith("eri_spsp") for name in names)


@pytest.mark.long
def test_both_drivers_agree():
    """Without the kernels for GPUs, with which `machines/test_gpu_machine.py` shows the same."""
    settings = Settings(xc="lda", grid_level=0)
    solver = Solver(settings)
    shape = solver.shape(HYDROGEN)
    class_tables = tables.shape_tables(shape, settings)
    stretched = type(HYDROGEN)(HYDROGEN.numbers, 1.3 * HYDROGEN.positions)
    batch = conformer.batch([HYDROGEN, stretched], shape, settings, 2)
    one, other = (
        jax.jit(driver(energies(shape, settings)), compiler_options=QUICK)(
            class_tables, batch, np.int32(2)
        )
        for driver in (sequential, side_by_side)
    )
    assert np.all(np.asarray(one.converged))
    np.testing.assert_allclose(one.orbital_energy, other.orbital_energy, atol=1e-5)
    np.testing.assert_allclose(one.energies.hi[:, 0], other.energies.hi[:, 0], atol=1e-5)
    assert abs(float(one.energies.hi[0, 0] - one.energies.hi[1, 0])) > 1e-3
