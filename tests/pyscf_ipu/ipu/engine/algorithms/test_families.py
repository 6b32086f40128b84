"""The family plan: every element of G once, even work, and made from shapes alone."""

import math
from functools import partial

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import METHYL_CHLORIDE

from pyscf_ipu.ipu.engine.algorithms.families import family_plan
from pyscf_ipu.ipu.engine.algorithms.family_cost import (
    PAIRINGS,
    PAIRS,
    block_bytes,
    piece_bytes,
    piece_cost,
)
from pyscf_ipu.ipu.engine.algorithms.family_cuts import (
    GATHERED_BYTES,
    MIN_OPERATIONS,
    SCRATCH_BYTES,
    cut,
)
from pyscf_ipu.ipu.engine.algorithms.family_vertex import family_eri_vertex
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.shapes.shape import shape_of

PENTANE = [6] * 5 + [1] * 12


def plan_of(numbers, basis="sto-3g", cart=False, pad=True, **options):
    return family_plan(shape_of(numbers, basis, cart, 0, pad), **options)


def coverage(plan):
    """How often G d takes each element of G: [P, P]."""
    n_pairs = plan.layout.shape.n_pairs
    side = n_pairs + 1  # the last row and column are places that stand for no element
    found = np.zeros(side * side)
    for c in plan.classes:
        functions = [k.n_functions for k in plan.kinds(c)]
        ends = np.cumsum([functions[x] * functions[y] for x, y in PAIRS])[:-1]
        parts = np.split(c.element.reshape(-1, c.element.shape[-1]), ends, axis=1)
        weight = c.weight.reshape(-1, 3)
        for t in range(3):
            bra, ket = np.broadcast_arrays(parts[2 * t][:, :, None], parts[2 * t + 1][:, None, :])
            each = np.broadcast_to(weight[:, t, None, None], bra.shape).ravel()
            for row, column in ((bra, ket), (ket, bra)):
                found += np.bincount((row * side + column).ravel(), each, side * side)
    return found.reshape(side, side)[:-1, :-1]


MOLECULES = {
    "sto-3g": (PENTANE[3:8], "sto-3g", False),
    "second row": (METHYL_CHLORIDE.numbers, "sto-3g", False),
    "d shells": ([8, 1, 1], "6-31g*", False),
    "cartesian": ([8, 1], "6-31g*", True),
    "general contraction": ([7, 1], "cc-pvdz", False),
}


@pytest.mark.parametrize("name", MOLECULES)
@pytest.mark.parametrize("n_tiles", [1, 1471])
def test_every_element_is_taken_once(name, n_tiles):
    numbers, basis, cart = MOLECULES[name]
    plan = plan_of(numbers, basis, cart, n_tiles=n_tiles)
    np.testing.assert_array_equal(coverage(plan), 1.0)


@settings(max_examples=12)
@given(
    st.lists(st.sampled_from([1, 6, 17]), min_size=1, max_size=3),
    st.sampled_from(["sto-3g", "6-31g"]),
    st.integers(1, 200),
    st.integers(1, 6),
)
def test_every_element_is_taken_once_in_any_shape(numbers, basis, n_tiles, workers):
    plan = plan_of(numbers, basis, pad=False, n_tiles=n_tiles, workers=workers)
    np.testing.assert_array_equal(coverage(plan), 1.0)


def test_a_family_is_there_once():
    plan = plan_of(PENTANE)
    n = sum(g.n_shells for g in plan.layout.groups)
    first = np.cumsum([0, *(g.n_shells for g in plan.layout.groups)])
    n_pairs = plan.layout.shape.n_pairs
    found = []
    for c in plan.classes:
        real = (c.element < n_pairs).any(axis=-1)  # the others fill up the last vertex
        found.append((first[list(c.groups)] + c.shells)[real])
    shells = np.concatenate(found)
    assert np.all(shells[:, :-1] >= shells[:, 1:])
    assert len(np.unique(shells, axis=0)) == len(shells) == math.comb(n + 3, 4)


def test_pieces_divide_the_primitives():
    plan = plan_of(PENTANE)
    assert any(c.pieces > 1 for c in plan.classes)
    for c in plan.classes:
        rows = np.stack([c.piece_rows(x) for x in range(4)], axis=-1)
        assert rows.shape == (len(c.tiles) * c.pieces, *c.shells.shape[1:])
        shells = rows // np.array(c.slices)
        np.testing.assert_array_equal(shells, np.repeat(c.shells, c.pieces, axis=0))
        of_first = (rows % np.array(c.slices))[: c.pieces, 0]
        assert len(np.unique(of_first, axis=0)) == c.pieces  # no slice twice
        assert c.tiles == c.piece_tiles[:: c.pieces]
        assert c.pieces == 1 or c.shells.shape[1] == 1


@pytest.mark.parametrize(
    ("numbers", "basis"),
    [(PENTANE, "sto-3g"), ([6] * 10 + [1] * 8, "sto-3g"), ([8, 1, 1], "6-31g")],
)
def test_vertices_fit_and_stay_worth_starting(numbers, basis):
    plan = plan_of(numbers, basis)
    for c in plan.classes:
        kinds = plan.kinds(c)
        assert all(k.n_prim % s == 0 for k, s in zip(kinds, c.slices, strict=True))
        assert piece_bytes(kinds, c.slices) * c.shells.shape[1] <= SCRATCH_BYTES
        if c.pieces > 1:
            assert block_bytes(kinds) * c.pieces <= GATHERED_BYTES
            assert c.cost >= MIN_OPERATIONS
        assert c.cost == piece_cost(kinds, c.slices) * c.shells.shape[1]


def test_pentane_is_even_over_the_workers_of_a_chip():
    plan = plan_of(PENTANE)
    load = plan.load()
    assert load.shape == (1471, 6)
    assert plan.balance() >= 0.9
    assert load.sum() == pytest.approx(sum(c.cost * len(c.piece_tiles) for c in plan.classes))
    assert min(min(c.piece_tiles) for c in plan.classes) == 1  # tile 0 stays free
    assert max(max(c.piece_tiles) for c in plan.classes) == 1471


@pytest.mark.parametrize("n_tiles", [1, 7, 100])
def test_few_tiles_are_even_as_well(n_tiles):
    plan = plan_of(PENTANE, n_tiles=n_tiles)
    assert plan.balance() >= 0.9
    # Families are put together where there are many per worker.
    assert n_tiles > 7 or max(c.shells.shape[1] for c in plan.classes) > 1


def test_a_cut_is_finer_under_a_lower_limit():
    plan = plan_of(PENTANE)
    kinds = plan.kinds(plan.classes[0])
    costs = []
    for limit in (1e9, 3e5, 1e5, 3e4):
        how = cut(kinds, 70, limit)
        costs.append(piece_cost(kinds, how.slices) * how.families)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < 0.5 * costs[0]
    # Slices repeat the work on pairs: in all they never cost less than the whole family.
    fine = cut(kinds, 70, 3e4)
    assert fine.pieces * costs[-1] >= piece_cost(kinds, (1, 1, 1, 1))


def test_a_plan_depends_on_the_shape_alone():
    assert plan_of([6, 6, 1, 1], n_tiles=9) is plan_of([8, 7, 1], n_tiles=9)


@pytest.mark.parametrize("options", [{"n_tiles": 0}, {"workers": 0}])
def test_no_plan_without_a_worker(options):
    with pytest.raises(ValueError, match="needs one of each"):
        plan_of([1, 1], **options)


def test_pairings_are_the_three_ways_to_pair_four_shells():
    assert {frozenset(map(frozenset, p)) for p in PAIRINGS} == {
        frozenset({frozenset({0, x}), frozenset({1, 2, 3} - {x})}) for x in (1, 2, 3)
    }


def operations(jaxpr):
    """Elementwise operations and multiply-adds of a program; copies are not counted."""
    total = 0
    for e in jaxpr.eqns:
        name, size = e.primitive.name, sum(math.prod(v.aval.shape) for v in e.outvars)
        if name == "scan":
            total += e.params["length"] * operations(e.params["jaxpr"].jaxpr)
        elif name in ("jit", "pjit"):
            total += operations(e.params["jaxpr"].jaxpr)
        elif name == "dot_general":
            contracted = e.params["dimension_numbers"][0][0]
            total += size * math.prod(e.invars[0].aval.shape[i] for i in contracted)
        elif name in ELEMENTWISE:
            total += size
        elif name == "reduce_sum":
            total += math.prod(e.invars[0].aval.shape)
        else:
            assert name in COPIES, name
    return total


ELEMENTWISE = "add add_any sub mul div exp sqrt neg pow integer_pow select_n lt gt square".split()
COPIES = (
    "split reshape concatenate broadcast_in_dim convert_element_type pad stack slice squeeze gather"
    " transpose dynamic_slice dynamic_update_slice scatter iota copy"
).split()


@pytest.mark.parametrize(("numbers", "basis"), [([6, 1], "sto-3g"), ([8], "6-31g*")])
def test_costs_are_the_operations_of_the_vertex(numbers, basis):
    plan = plan_of(numbers, basis, pad=False)
    groups = plan.layout.groups
    for c in plan.classes[:: max(1, len(plan.classes) // 6)]:
        shells = [groups[g] for g in c.groups]
        rows = []
        for group, slices in zip(shells, c.slices, strict=True):
            depth = group.kind.n_prim // slices
            contractions = sum(n for _, n in group.kind.parts)
            rows.append(jax.ShapeDtypeStruct((1, 2 * depth * (1 + contractions) + 6), np.float32))
        vertex = partial(family_eri_vertex, tuple(shells), c.slices, Interaction(0.2))
        traced = jax.make_jaxpr(vertex)(*rows, jax.ShapeDtypeStruct((1, 3), np.float32))
        counted = operations(traced.jaxpr)
        assert piece_cost(plan.kinds(c), c.slices) == pytest.approx(counted, rel=0.25)
