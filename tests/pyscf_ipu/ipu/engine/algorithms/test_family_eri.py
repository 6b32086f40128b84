"""G by quartet families against the supermatrix of the engine, element by element, and G d."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import HYDROGEN, QUICK, WATER, mole_of, molecule

from pyscf_ipu import Molecule, Settings
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.integrals.supermatrix import pair_order, repulsion, supermatrix
from pyscf_ipu.ipu.engine.algorithms.families import family_plan
from pyscf_ipu.ipu.engine.algorithms.family_cost import PAIRS
from pyscf_ipu.ipu.engine.algorithms.family_eri import family_repulsion, family_supermatrix
from pyscf_ipu.ipu.engine.algorithms.host_blocks import host_supermatrix
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan

AMMONIA = molecule("N 0 0 0.1; H 0 0.94 -0.27; H 0.81 -0.47 -0.27; H -0.81 -0.47 -0.27")
OXYGEN = Molecule([8, 8], [[0.1, 0.2, 0.3], [0.9, -1.0, 2.0]])
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}

# Molecule, basis, cartesian, (fraction of) exact exchange, tiles, and every how many family classes
# are computed, for the sake of compile time; on one tile families are put together, on many cut.
SYSTEMS = {
    "hydrogen": (HYDROGEN, "sto-3g", False, 0.2, 1, 1),
    "water": (WATER, "sto-3g", False, 0.2, 1471, 1),
    "water on one tile": (WATER, "sto-3g", False, 1.0, 1, 1),
    "few empty slots": (AMMONIA, "sto-3g", False, 0.2, 20, 1),
    "range separation": (HYDROGEN, "6-31g", False, Interaction(0.2, 0.6, 0.3), 8, 2),
    "without exact exchange": (HYDROGEN, "6-31g", False, 0.0, 8, 1),
    "d shells": (OXYGEN, "6-31g*", False, 0.2, 200, 31),
    "cartesian d shells": (OXYGEN, "6-31g*", True, 0.2, 8, 11),
    "general contraction": (HYDROGEN, "cc-pvdz", False, 0.2, 1471, 4),
}
# Compilation takes a minute for some: not every system in both precisions.
CASES = [
    ("hydrogen", "float32"),
    pytest.param("without exact exchange", "float64", marks=pytest.mark.long),
    ("range separation", "float64"),
    pytest.param("water", "float32", marks=pytest.mark.long),
    pytest.param("few empty slots", "float32", marks=pytest.mark.long),
    pytest.param("water on one tile", "float64", marks=pytest.mark.long),
    pytest.param("d shells", "float32", marks=pytest.mark.long),
]


class System:
    """Both forms of G of one molecule, and functions of the density."""

    def __init__(self, name, precision):
        mol, basis, cart, x, n_tiles, every = SYSTEMS[name]
        self.x = x if isinstance(x, Interaction) else Interaction(x)
        self.settings = Settings(precision=precision, basis=basis, cart=cart, grid_level=0)
        self.numerics = self.settings.numerics
        self.dtype = self.numerics.scf_dtype
        self.shape = shape_of(mol.numbers, basis, cart, 0)
        if name in ("water", "few empty slots"):
            self.shape = shape_of([6, 6, *[1] * 6], basis, cart, 0)
        plan = family_plan(self.shape, n_tiles)
        self.plan = dataclasses.replace(plan, classes=plan.classes[::every])
        self.is_whole = every == 1
        self.tables = tables.shape_tables(self.shape, self.settings)
        self.mol = conformer.conformer(mol, self.shape, self.settings)

    def density(self):
        """Random, of unit size, symmetric, doubled off the diagonal; packed."""
        rng = np.random.default_rng(3)
        return rng.normal(size=self.shape.n_pairs).astype(self.dtype) / self.shape.n_ao

    def atoms(self, tables, mol):
        return gather_atoms(tile_plan(self.shape), tables, mol, self.dtype)

    def by_families(self, tables, mol, d):
        g = family_supermatrix(self.plan, self.atoms(tables, mol), self.x)
        return [x.array for x in g], *family_repulsion(self.plan, g, d)

    def by_rows(self, tables, mol, d):
        atoms = self.atoms(tables, mol)
        half = supermatrix(atoms.plan, pair_strips(atoms), self.x)
        return half, *repulsion(half, d, pair_order(atoms.plan))

    def coverage(self):
        """[P, P] of 1 where a class that is computed gives the element, else 0."""
        sizes = [math.prod(k.n_functions for k in self.plan.kinds(c)) for c in self.plan.classes]
        return self.dense(
            [
                np.broadcast_to(c.weight[..., None], (*c.weight.shape, size))
                for c, size in zip(self.plan.classes, sizes, strict=True)
            ]
        )

    def dense(self, blocks):
        """[P, P] from the blocks and the plan's indices."""
        n = self.shape.n_pairs
        found = np.zeros((n + 1, n + 1))
        for c, values in zip(self.plan.classes, blocks, strict=True):
            f = [k.n_functions for k in self.plan.kinds(c)]
            sizes = [f[x] * f[y] for x, y in PAIRS]
            element = c.element.reshape(-1, c.element.shape[-1])
            parts = np.split(element, np.cumsum(sizes)[:-1], axis=1)
            values = np.asarray(values, np.float64).reshape(len(element), 3, -1)
            for t in range(3):
                block = values[:, t].reshape(-1, sizes[2 * t], sizes[2 * t + 1])
                bra, ket = parts[2 * t][:, :, None], parts[2 * t + 1][:, None, :]
                np.add.at(found, (bra, ket), block)
                np.add.at(found, (ket, bra), block)
        return found[:n, :n]


@functools.cache
def computed(name, precision):
    system = System(name, precision)
    d = system.density()
    with system.numerics.scope():
        families = jax.jit(system.by_families, compiler_options=QUICK)(system.tables, system.mol, d)
        rows = jax.jit(system.by_rows)(system.tables, system.mol, d)
    return system, jax.tree.map(np.asarray, families), jax.tree.map(np.asarray, rows)


def by_rows(name, precision):
    """G [P, P] from the engine's own supermatrix, 0 where no class is computed; in float64."""
    system, _, (half, _, _) = computed(name, precision)
    return whole(system, half) * system.coverage()


def whole(system, half):
    """G [P, P] from its packed half; in float64."""
    n = system.shape.n_pairs
    lower = np.zeros((n, n))
    lower[np.tril_indices(n)] = half
    places = np.argsort(pair_order(tile_plan(system.shape)))
    return (lower + lower.T)[places[:, None], places]


@pytest.mark.parametrize(("name", "precision"), CASES)
def test_g_is_the_supermatrix(name, precision):
    system, (blocks, _, _), _ = computed(name, precision)
    coverage = system.coverage()
    assert set(np.unique(coverage)) == ({1.0} if system.is_whole else {0.0, 1.0})
    expected = by_rows(name, precision)
    np.testing.assert_allclose(system.dense(blocks), expected, rtol=0, atol=TOLERANCE[precision])


@pytest.mark.parametrize(("name", "precision"), CASES)
def test_product_and_energy(name, precision):
    system, (_, product, energy), (_, known_product, known_energy) = computed(name, precision)
    assert product.dtype == system.dtype
    tolerance = TOLERANCE[precision]
    g, d = by_rows(name, precision), system.density().astype(np.float64)
    np.testing.assert_allclose(product, g @ d, rtol=0, atol=tolerance)
    total = float(energy.hi) + float(energy.lo)
    assert total == pytest.approx(0.5 * d @ g @ d, rel=0, abs=tolerance)
    if system.is_whole:
        np.testing.assert_allclose(product, known_product, rtol=0, atol=tolerance)
        known = float(known_energy.hi) + float(known_energy.lo)
        assert total == pytest.approx(known, rel=0, abs=tolerance)


@pytest.mark.long
def test_energy_has_the_digits_of_g():
    """Of the blocks as they are, rounded to float32, the energy is exact to 2e-8 of its terms."""
    system, (blocks, _, energy), _ = computed("water", "float32")
    g, d = system.dense(blocks), system.density().astype(np.float64)
    size = 0.5 * np.abs(d) @ np.abs(g) @ np.abs(d)
    assert abs(float(energy.hi) + float(energy.lo) - 0.5 * d @ g @ d) < 3e-8 * size


@pytest.mark.long
def test_against_pyscf():
    system, (blocks, _, _), _ = computed("water on one tile", "float64")
    place = conformer.ao_order(WATER, system.shape, system.settings)
    eri = np.zeros([system.shape.n_ao] * 4)  # zero where a slot is empty
    eri[np.ix_(place, place, place, place)] = mole_of(WATER).intor("int2e")
    i, j = np.tril_indices(system.shape.n_ao)
    coulomb = eri[i[:, None], j[:, None], i, j]
    exchange = eri[i[:, None], i, j[:, None], j] + eri[i[:, None], j, j[:, None], i]
    np.testing.assert_allclose(system.dense(blocks), coulomb - 0.25 * exchange, rtol=0, atol=1e-10)


def test_empty_slots_have_no_repulsion():
    system, (blocks, _, _), _ = computed("water", "float32")
    charge = jax.jit(lambda *x: system.atoms(*x).charge)(system.tables, system.mol)
    empty = (np.asarray(charge) == 0)[system.plan.layout.ao_atom]
    assert empty.sum() == 9  # a heavy atom and four hydrogens
    i, j = np.tril_indices(system.shape.n_ao)
    assert not np.any(system.dense(blocks)[empty[i] | empty[j]])


@pytest.mark.parametrize(
    ("name", "every"),
    [
        ("water", 1),
        pytest.param("few empty slots", 1, marks=pytest.mark.long),
        pytest.param("d shells", 1, marks=pytest.mark.long),
        ("cartesian d shells", 5),
    ],
)
def test_the_host_s_blocks_are_those_of_the_vertices(name, every):
    """All classes against the engine's supermatrix, where there are too many to run them all."""
    system = System(name, "float64")
    plan = family_plan(system.shape, SYSTEMS[name][4])
    plan = dataclasses.replace(plan, classes=plan.classes[::every])
    system.plan = plan

    def blocks(tables, mol):
        return host_supermatrix(plan, system.atoms(tables, mol), system.x)

    with system.numerics.scope():
        found = jax.jit(blocks, compiler_options=QUICK)(system.tables, system.mol)
        half, *_ = jax.jit(system.by_rows)(system.tables, system.mol, system.density())
    expected = whole(system, half) * system.coverage()
    np.testing.assert_allclose(system.dense([x.array for x in found]), expected, atol=1e-12)


def test_the_program_that_runs_looks_like_the_one_that_is_priced():
    system, (blocks, _, _), _ = computed("water", "float32")
    found = jax.jit(lambda t, m: host_supermatrix(system.plan, system.atoms(t, m), system.x))(
        system.tables, system.mol
    )
    for c, x, y in zip(system.plan.classes, found, blocks, strict=True):
        assert x.tiles == c.tiles
        assert x.array.shape == y.shape
        there = np.abs(np.asarray(x.array)) > 0  # the others stand for no pair
        np.testing.assert_allclose(np.asarray(x.array)[there], y[there], atol=1e-5)


def every_jaxpr(jaxpr):
    yield jaxpr
    for e in jaxpr.eqns:
        for value in jax.tree.leaves(
            list(e.params.values()), is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")
        ):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from every_jaxpr(inner)


@pytest.fixture(scope="module", params=[False, True], ids=["x32", "x64"])
def traced(request):
    system = System("water", "float32")
    with jax.enable_x64(request.param):
        return jax.make_jaxpr(system.by_families)(system.tables, system.mol, system.density())


def test_a_float32_program_has_no_wider_number(traced):
    for jaxpr in every_jaxpr(traced.jaxpr):
        for v in [*jaxpr.invars, *jaxpr.constvars, *(o for e in jaxpr.eqns for o in e.outvars)]:
            assert v.aval.dtype not in (np.float64, np.complex128), str(v)


def test_vertices_look_up_at_constant_places_only(traced):
    """Every gather in a vertex has indices that derive from constants."""
    vertices = [e for e in traced.jaxpr.eqns if e.primitive.name == "tile_map"]
    names = {e.params["name"] for e in vertices}
    assert {"family_product", "family_sum", "family_eri_s_s_s_s", "family_eri_sp_sp_s_s"} <= names
    for e in vertices:
        n_consts = e.params["n_consts"]
        for inner in every_jaxpr(e.params["jaxpr"].jaxpr):
            data = set(
                inner.invars[n_consts:] if inner is e.params["jaxpr"].jaxpr else inner.invars
            )
            for q in inner.eqns:
                operands = [v for v in q.invars if not hasattr(v, "val")]
                if q.primitive.name == "gather":
                    assert q.invars[1] not in data
                if q.primitive.name.startswith("scatter"):
                    assert q.invars[1] not in data
                if any(v in data for v in operands):
                    data.update(q.outvars)


def test_stages_are_named(traced):
    for e in traced.jaxpr.eqns:
        if e.primitive.name == "tile_map":
            later = ("family_product", "total")
            stage = "repulsion" if e.params["name"] in later else "eri"
            assert str(e.source_info.name_stack) == stage


def test_blocks_stay_where_the_product_is(traced):
    """The product of a class runs on the tiles that keep its blocks."""
    plan = System("water", "float32").plan
    found = [
        e.params["tiles"]
        for e in traced.jaxpr.eqns
        if e.primitive.name == "tile_map" and e.params["name"] == "family_product"
    ]
    assert found == [c.tiles for c in plan.classes]


def test_a_batch_of_molecules():
    system = System("hydrogen", "float32")
    mols = [HYDROGEN, Molecule([1, 1], [[0.0, 0.0, 0.0], [0.0, 0.0, 2.5]])]
    both = conformer.batch(mols, system.shape, system.settings, 2)
    d = np.stack([system.density(), -system.density()])
    run = jax.jit(jax.vmap(system.by_families, (None, 0, 0)), compiler_options=QUICK)
    _, product, energy = run(system.tables, both, jnp.asarray(d))
    alone = jax.jit(system.by_families, compiler_options=QUICK)
    for i, mol in enumerate(mols):
        one = conformer.conformer(mol, system.shape, system.settings)
        _, expected, expected_energy = alone(system.tables, one, d[i])
        np.testing.assert_allclose(product[i], expected, rtol=0, atol=1e-6)
        np.testing.assert_allclose(energy.hi[i], expected_energy.hi, rtol=1e-6)
    assert abs(product[0] + product[1]).max() > 1e-2  # two molecules, not one twice


def test_a_density_of_another_shape_is_refused():
    system = System("hydrogen", "float32")
    with pytest.raises(ValueError, match="give the packed density"):
        family_repulsion(system.plan, (), jnp.zeros(5))
