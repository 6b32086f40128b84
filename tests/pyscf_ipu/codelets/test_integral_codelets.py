"""Native integrals, supermatrix and repulsion against their portable vertices.

Sizes are chosen to vectorise badly: one shell pair, one less and one more than a vector's lanes,
and slots that stay empty.
"""

import jax
import numpy as np
import pytest

from pyscf_ipu import Molecule, Settings, tables
from pyscf_ipu.codelets import codelet, codelet_p, library
from pyscf_ipu.exchange_correlation import atom_data
from pyscf_ipu.integrals import eri_matrix, one_electron
from pyscf_ipu.jk import packed_indices, repulsion, supermatrix
from pyscf_ipu.precision import Pair
from pyscf_ipu.shape import shape_of
from pyscf_ipu.strips import pair_strips
from pyscf_ipu.tiles import tile_plan

pytestmark = pytest.mark.skipif(library() is None, reason="the native library was not built")

WHOLE = 10**6  # primitive pairs: one strip per class
SYSTEMS = {
    "one pair": ([1], "sto-3g", WHOLE),
    "15 pairs": ([1] * 5, "sto-3g", WHOLE),
    "17 in a class": ([6, 7] + [1] * 8, "sto-3g", WHOLE),
    "second row": ([17, 6, 1, 1], "sto-3g", 40),
    "empty slots": ([6, 8, 1], "6-31g", 100),
    "d shells": ([8, 1], "6-31g*", 60),
    "far apart": ([8, 8], "6-31g*", WHOLE),  # Boys functions at arguments in the hundreds
    "general contraction": ([7, 1, 1], "cc-pvdz", WHOLE),
}
TOLERANCE = {"float32": 2e-6, "float64": 1e-12}


def random_molecule(numbers, bohr):
    rng = np.random.default_rng(len(numbers))
    return Molecule(numbers, rng.normal(size=(len(numbers), 3)) * bohr)


def native_and_portable(function, *args):
    """Results of a jitted function with its codelets, and with their portable forms inlined."""
    names = []

    def inlined(*args):
        closed = jax.make_jaxpr(function)(*args)
        return portable(closed.jaxpr, closed.consts, args)

    def portable(jaxpr, consts, args):
        values = dict(zip(jaxpr.constvars, consts, strict=True))
        values |= dict(zip(jaxpr.invars, jax.tree.leaves(args), strict=True))
        for e in jaxpr.eqns:
            operands = [v.val if hasattr(v, "val") else values[v] for v in e.invars]
            if e.primitive is codelet_p:
                names.append(e.params["name"])
                out = e.params["portable"](*map(jax.numpy.asarray, operands))
            else:
                out = e.primitive.bind(*operands, **e.params)
                out = out if e.primitive.multiple_results else [out]
            values |= dict(zip(e.outvars, out, strict=True))
        return [values[v] for v in jaxpr.outvars]

    native = jax.tree.leaves(jax.jit(function)(*args))
    return native, jax.jit(inlined)(*args), names


LONG = ("far apart", "general contraction")


def case_of(name, precision):
    marks = [pytest.mark.slow, pytest.mark.long] if name in LONG else []
    return pytest.param((name, precision), marks=marks)


CASES = [case_of(name, "float32") for name in SYSTEMS if name != "empty slots"] + [
    case_of(name, "float64") for name in ("17 in a class", "empty slots", "general contraction")
]


@pytest.mark.parametrize("case", [*CASES, ("cartesian d", "float32")], ids="-".join)
def test_shell_pairs(case):
    name, precision = case
    cart = name == "cartesian d"
    numbers, basis, strip = SYSTEMS["d shells" if cart else name]
    settings = Settings(basis=basis, precision=precision, cart=cart)
    mol = random_molecule(numbers, 2.5)
    shape = shape_of(mol.numbers, basis, cart, 0)
    plan, dtype = tile_plan(shape, 1, strip), settings.numerics.scf_dtype
    with settings.numerics.scope():
        arrays = tables.shape_tables(shape, settings), tables.conformer(mol, shape, settings)
        native, portable, names = native_and_portable(
            lambda t, c: pair_strips(plan, t, c, dtype), *arrays
        )
    assert set(names) == {"shell_pairs"}
    for a, b in zip(native, portable, strict=True):
        bound = TOLERANCE[precision] * max(1.0, float(np.abs(b).max()))
        np.testing.assert_allclose(a, b, rtol=0, atol=bound)


def test_a_portable_form_of_another_shape_is_an_error():
    def wrong(x):
        return codelet("repulsion", lambda x: x[None], x, shape=(3,))

    with pytest.raises(TypeError, match=r"'repulsion' returns .* its call says"):
        jax.vmap(wrong)(np.ones((2, 3), np.float32))


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def integrals(request):
    """(plan, native results, portable results, names of the codelets, tolerance)."""
    name, precision = request.param
    numbers, basis, strip = SYSTEMS[name]
    settings = Settings(basis=basis, precision=precision)
    mol = random_molecule(numbers, 15.0 if name == "far apart" else 2.5)
    shape = shape_of(mol.numbers, basis, False, 0)
    plan = tile_plan(shape, 1, strip)
    dtype = settings.numerics.scf_dtype

    def run(strips, charge, hi, lo):
        return eri_matrix(plan, strips), *one_electron(plan, strips, charge, Pair(hi, lo))

    with settings.numerics.scope():
        arrays = tables.shape_tables(shape, settings), tables.conformer(mol, shape, settings)
        strips = jax.jit(lambda *x: pair_strips(plan, *x, dtype))(*arrays)
        charge, _ = atom_data(plan.layout, *arrays)
        found = native_and_portable(run, strips, charge, *arrays[1].positions)
    return plan, *found, TOLERANCE[precision]


def test_eri(integrals):
    plan, native, portable, names, tolerance = integrals
    assert names.count("eri") == 1
    i, j = packed_indices(plan.layout.shape.n_ao)
    rows = plan.row_of[i, j]
    a, b = (np.asarray(x[0])[rows[:, None], rows] for x in (native, portable))
    assert np.abs(b).max() > 0.1
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(a, a.T)


def test_nuclear_attraction(integrals):
    plan, native, portable, names, tolerance = integrals
    assert names.count("nuclear_attraction") == len(plan.strips)
    for a, b in zip(native[1:], portable[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=20 * tolerance)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("x", [0.0, 0.2])
@pytest.mark.parametrize("n_hydrogen", [1, 5, 15, 17])
def test_supermatrix_and_repulsion(precision, x, n_hydrogen):
    shape = shape_of([1] * n_hydrogen, "sto-3g", False, 0)
    plan = tile_plan(shape, 1, WHOLE)
    settings = Settings(precision=precision)
    rng = np.random.default_rng(n_hydrogen)
    with settings.numerics.scope():
        dtype = settings.numerics.scf_dtype
        matrix = rng.normal(size=(plan.n_rows, plan.n_rows)).astype(dtype)
        matrix = matrix + matrix.T
        (half,), (expected,), _ = native_and_portable(lambda m: supermatrix(plan, m, x), matrix)
        np.testing.assert_allclose(half, expected, rtol=0, atol=TOLERANCE[precision])
        d = rng.normal(size=shape.n_pairs).astype(dtype)
        native, portable, _ = native_and_portable(repulsion, expected, d)
    scale = float(np.abs(np.asarray(expected)).sum())
    for a, b in zip(native, portable, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE[precision] * (1 + 0.01 * scale))
    # Rounding of a block's products remains, that of their sum does not.
    energies = [float(r[1]) + float(r[2]) for r in (native, portable)]
    bound = 0.3 * TOLERANCE[precision] * (1 + 0.01 * scale)
    assert energies[0] == pytest.approx(energies[1], abs=bound)
