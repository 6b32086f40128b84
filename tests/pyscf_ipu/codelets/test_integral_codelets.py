"""Native integrals, supermatrix and repulsion against their portable vertices.

Sizes are chosen to vectorise badly: one shell pair, one less and one more than a vector's lanes,
and slots that stay empty.
"""

from itertools import pairwise

import jax
import numpy as np
import pytest
from oracle import NATIVE, SYSTEMS, native_and_portable, random_molecule

from pyscf_ipu import Settings
from pyscf_ipu.codelets import codelet
from pyscf_ipu.integrals import eri_matrix, one_electron
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.integrals.supermatrix import packed_indices, repulsion, supermatrix
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan

pytestmark = [pytest.mark.slow, NATIVE]

TOLERANCE = {"float32": 2e-6, "float64": 1e-12}
SEPARATED = Interaction(0.2, 0.6, 0.3)
EXCHANGES = Interaction(0.0), Interaction(0.25), SEPARATED
EVERY_INTERACTION = (COULOMB, SEPARATED), EXCHANGES
TWO_INTERACTIONS = (COULOMB,), (SEPARATED,)
INTERACTIONS = {
    "one pair": EVERY_INTERACTION,
    "15 pairs": EVERY_INTERACTION,
    "several strips": ((SEPARATED,), (Interaction(0.25),)),
}
"""Of ERIs and of supermatrices that are not two: each compiles, so one large shape has all."""

LONG = ("d shells", "far apart", "general contraction", "f shells", "cartesian f")
LONG_ERIS = (*LONG, "second row", "empty slots")
"""`test_hamiltonian.py` has native integrals of such molecules beside PySCF's."""
DOUBLE = ("several strips", "empty slots", "general contraction")


def cases_of(long):
    double = [("17 in a class", "float64"), *((name, "float64") for name in DOUBLE)]
    single = [(name, "float32") for name in SYSTEMS if name not in DOUBLE]
    for case in [*single, *double]:
        again = case[0] in {*long, "17 in a class"}
        yield pytest.param(case, marks=pytest.mark.long if again else [])


CASES = [*cases_of(LONG), ("cartesian d", "float32")]
MORE = [
    pytest.param((name, "float32"), marks=pytest.mark.long) for name in ("f shells", "cartesian f")
]


def with_charges(data):
    """E times p^(-3/2): in float the smallest charge of a pair takes the rounding of the others."""
    return data._replace(hermite=data.hermite * data.p[..., None, None] ** -1.5)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*CASES, *MORE], ids="-".join)
def test_pair_strips(case):
    name, precision = case
    cart = name.startswith("cartesian")
    systems = {"f shells": ([8, 8], "def2-tzvp", 60), "cartesian d": SYSTEMS["d shells"], **SYSTEMS}
    numbers, basis, _ = systems.get(name, systems["f shells"])
    settings = Settings(basis=basis, precision=precision, cart=cart, grid_level=0)
    mol = random_molecule(numbers, 2.5)
    shape = shape_of(mol.numbers, basis, cart, 0)
    plan, dtype = tile_plan(shape), settings.numerics.scf_dtype

    def pairs(class_tables, conformer):
        atoms = gather_atoms(plan, class_tables, conformer, dtype)
        return [with_charges(data) for data in pair_strips(atoms)]

    with settings.numerics.scope():
        arrays = tables.shape_tables(shape, settings), conformer.conformer(mol, shape, settings)
        native, portable, names = native_and_portable(pairs, *arrays)
    assert names == ["look_up", "pair_strips"]
    for a, b in zip(native, portable, strict=True):
        bound = TOLERANCE[precision] * max(1.0, float(np.abs(b).max()))
        np.testing.assert_allclose(a, b, rtol=0, atol=bound)


def test_a_portable_form_of_another_shape_is_an_error():
    def wrong(x):
        return codelet("repulsion", lambda x: x[None], x, shape=(3,))

    with pytest.raises(TypeError, match=r"'repulsion' returns .* its call says"):
        jax.vmap(wrong)(np.ones((2, 3), np.float32))


@pytest.fixture(scope="module", params=cases_of(LONG_ERIS), ids="-".join)
def integrals(request):
    """(plan, (native, portable) results by kind, names of the codelets, tolerance)."""
    name, precision = request.param
    of_eri, of_halves = INTERACTIONS.get(name, TWO_INTERACTIONS)
    numbers, basis, strip = SYSTEMS[name]
    settings = Settings(basis=basis, precision=precision, grid_level=0)
    mol = random_molecule(numbers, 15.0 if name == "far apart" else 2.5)
    shape = shape_of(mol.numbers, basis, False, 0)
    plan = tile_plan(shape, 1, strip)
    dtype = settings.numerics.scf_dtype

    def run(strips, atoms):
        matrices = [eri_matrix(plan, strips, of) for of in of_eri]
        halves = [supermatrix(plan, strips, of) for of in of_halves]
        halves.append(supermatrix(plan, strips, of_halves[-1], apart=True))
        return matrices, halves, one_electron(atoms, strips)

    with settings.numerics.scope():
        arrays = tables.shape_tables(shape, settings), conformer.conformer(mol, shape, settings)
        atoms = jax.jit(lambda *x: gather_atoms(plan, *x, dtype))(*arrays)
        *found, names = native_and_portable(run, jax.jit(pair_strips)(atoms), atoms)
    first, second = len(of_eri), len(of_eri) + len(of_halves) + 1
    results = {
        "eri": [x[:first] for x in found],
        "supermatrix": [x[first:second] for x in found],
        "one electron": [x[second:] for x in found],
    }
    return plan, results, names, TOLERANCE[precision]


def test_eri(integrals):
    plan, results, names, tolerance = integrals
    native, portable = results["eri"]
    assert names.count("eri") == len(native)
    i, j = packed_indices(plan.layout.shape.n_ao)
    rows = plan.row_of[i, j]
    for matrix, expected in zip(native, portable, strict=True):
        a, b = (np.asarray(x)[rows[:, None], rows] for x in (matrix, expected))
        assert np.abs(b).max() > 0.1
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)
        np.testing.assert_array_equal(a, a.T)


def test_one_electron(integrals):
    _, results, names, tolerance = integrals
    assert names.count("one_electron") == 1
    for a, b in zip(*results["one electron"], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=20 * tolerance)


def test_pairs_of_one_atom_have_the_charge_that_their_overlap_says():
    """An atom's AOs are normalised: what is left is far below the rounding of one number."""
    numbers, basis, strip = [6, 8, 1], "sto-3g", 10**6
    settings = Settings(basis=basis, grid_level=0)
    mol = random_molecule(numbers, 2.5)
    shape = shape_of(mol.numbers, basis, False, 0)
    plan = tile_plan(shape, 1, strip)
    arrays = tables.shape_tables(shape, settings), conformer.conformer(mol, shape, settings)
    strips = jax.jit(lambda *x: pair_strips(gather_atoms(plan, *x, np.float32)))(*arrays)
    errors = []
    for data, of in zip(strips, plan.strips, strict=True):
        charge = np.asarray(data.hermite[..., 0], float)
        charge = charge * (np.pi / np.asarray(data.p, float)[..., None]) ** 1.5
        own = (of.atom >= 0)[..., None] & (np.abs(charge.sum(2) - 1.0) < 1e-5)
        errors += (charge.sum(2) - 1.0)[own].tolist()
    assert len(errors) > 5
    assert np.abs(errors).max() < 4e-9


def test_one_electron_integrals_of_floats_are_computed_in_double():
    """Rounded once: half of the last digit."""
    numbers, basis, strip = SYSTEMS["d shells"]
    settings = Settings(basis=basis, grid_level=0)
    mol = random_molecule(numbers, 2.5)
    shape = shape_of(mol.numbers, basis, False, 0)
    plan = tile_plan(shape, 1, strip)
    arrays = tables.shape_tables(shape, settings), conformer.conformer(mol, shape, settings)
    atoms = jax.jit(lambda *x: gather_atoms(plan, *x, np.float32))(*arrays)
    narrow = atoms, jax.jit(pair_strips)(atoms)
    found = jax.jit(one_electron)(*narrow)

    def widened(x):
        return x.astype(np.float64) if x.dtype == np.float32 else x

    with jax.enable_x64(True):
        expected = jax.jit(one_electron)(*jax.tree.map(widened, narrow))
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=6.0e-8, atol=1e-12)


def test_supermatrix(integrals):
    """Without exchange, with part of it, and with another interaction."""
    _, results, names, tolerance = integrals
    native, portable = results["supermatrix"]
    assert names.count("supermatrix") == len(native)
    for a, b in zip(native, portable, strict=True):
        assert np.abs(b).max() > 0.1
        np.testing.assert_allclose(a, b, rtol=0, atol=2 * tolerance)
    *whole, apart = native
    for a, b in pairwise(whole):
        assert np.abs(a - b).max() > 0.01
    np.testing.assert_allclose(apart[0] + apart[1], whole[-1], rtol=0, atol=2 * tolerance)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("n_pairs", [1, 15, 64, 120, 153])
def test_repulsion(precision, n_pairs):
    rng = np.random.default_rng(n_pairs)
    settings = Settings(precision=precision, grid_level=0)
    with settings.numerics.scope():
        dtype = settings.numerics.scf_dtype
        expected = rng.normal(size=n_pairs * (n_pairs + 1) // 2).astype(dtype)
        d = rng.normal(size=n_pairs).astype(dtype)
        native, portable, _ = native_and_portable(repulsion, expected, d)
    scale = float(np.abs(np.asarray(expected)).sum())
    for a, b in zip(native, portable, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE[precision] * (1 + 0.01 * scale))
    # Rounding of a block's products remains, that of their sum does not.
    energies = [float(r[1]) + float(r[2]) for r in (native, portable)]
    bound = 0.3 * TOLERANCE[precision] * (1 + 0.01 * scale)
    assert energies[0] == pytest.approx(energies[1], abs=bound)


def test_the_sum_of_a_repulsion_is_rounded_once():
    """Terms of one sign, of which a float's running total would lose the last digits."""
    rng = np.random.default_rng(0)
    n_pairs = 1200
    half = rng.uniform(0.5, 1, n_pairs * (n_pairs + 1) // 2).astype(np.float32)
    d = rng.uniform(0.5, 1, n_pairs).astype(np.float32)
    lower = np.zeros((n_pairs, n_pairs))
    lower[np.tril_indices(n_pairs)] = half
    exact = (lower + lower.T) @ d.astype(np.float64)
    found = np.asarray(jax.jit(repulsion)(half, d)[0], np.float64)
    one_rounding = 2.0**-24 * np.exp2(np.ceil(np.log2(np.abs(exact))))
    assert np.abs((found - exact) / one_rounding).max() < 1
