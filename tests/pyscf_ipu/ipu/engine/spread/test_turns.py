"""Families that take turns: the same G d in less memory, a part of G off the chip if it must be."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import HYDROGEN, WATER

from pyscf_ipu import Settings, rks_core
from pyscf_ipu.ipu import BOW, Quantity, machine_of, memory_of
from pyscf_ipu.ipu.engine.algorithms.families import family_plan
from pyscf_ipu.ipu.engine.algorithms.family_eri import family_repulsion, family_supermatrix
from pyscf_ipu.ipu.engine.algorithms.host_blocks import host_supermatrix
from pyscf_ipu.ipu.engine.spread.turns import Needs, Room, grid_bytes, in_turns, room, turns_of
from pyscf_ipu.ipu.simulate import profile_of
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan

EXCHANGE = Interaction(0.2)
TILES = 1
SHAPE = shape_of(WATER.numbers, "sto-3g", False, 0)
PLAN = family_plan(SHAPE, TILES)
MUCH = Room(2.0**20, 65536)
KIB = 1024


def rooms(shape, n_tiles):
    return room(BOW, shape, n_tiles)


def alkane(n):
    return shape_of(np.array([6] * n + [1] * (2 * n + 2)), "sto-3g", False, 0, pad=False)


class TestHowMany:
    def test_one_if_all_fits_at_once(self):
        assert turns_of(Needs(100 * KIB, 200 * KIB, 50 * KIB), Room(500 * KIB, 8 * KIB), 6) == (
            1,
            100 * KIB,
        )

    def test_more_if_only_what_travels_is_too_much(self):
        turns, on_chip = turns_of(Needs(100 * KIB, 600 * KIB, 50 * KIB), Room(500 * KIB, 8192), 6)
        assert turns == 25  # of 24 KiB each
        assert on_chip == 100 * KIB

    def test_a_part_of_g_leaves_if_it_is_too_much(self):
        left = Room(500 * KIB, 8192)
        turns, on_chip = turns_of(Needs(480 * KIB, 240 * KIB, 50 * KIB), left, 6)
        assert turns == 10
        assert on_chip == 500 * KIB - (6 * 8 + 24 + 48) * KIB

    def test_nothing_is_left_of_a_room_that_is_too_small(self):
        assert turns_of(Needs(480 * KIB, 10.0, 10.0), Room(50 * KIB, 8192), 6)[1] == 0.0


def test_small_molecules_have_one_turn_and_the_widest_vertices():
    for n, tiles in ((1, 1472), (5, 1472), (9, 1472)):
        found = rooms(alkane(n), tiles)
        assert found.scratch == 65536 or n == 9
        assert in_turns(PLAN, found) is PLAN


def test_large_ones_have_narrower_vertices():
    found = [rooms(alkane(n), 4 * 1472).scratch for n in (9, 20, 30, 36)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1] >= 8192


def test_ao_values_are_made_again_where_g_needs_their_room():
    kept, again = (rooms(alkane(n), 4 * 1472) for n in (30, 36))
    assert (kept.parts, again.parts) == (1, 4)
    assert again.all == kept.all + grid_bytes(alkane(30), 4 * 1472)
    values = 4 * 4 * alkane(36).n_ao * 4  # four planes of four points
    assert again.xc == kept.xc + values


def in_parts(parts):
    """A program that makes AO values again in so many parts, and its arguments."""
    settings = Settings(fixed_cycles=1)
    return rks_core(
        HYDROGEN, settings, lambda shape: replace(machine_of(BOW, 1, shape), grid_parts=parts)
    )


@pytest.mark.slow
def test_parts_of_the_points_need_less_memory():
    """`grid/test_blocks.py` has matrix and energy of such parts."""

    def values(core, args):
        lifetimes = memory_of(core, BOW, 1, *args).lifetimes
        return max(x.tile_bytes for x in lifetimes if x.name == "ao_values")

    kept, again = (values(*in_parts(n)) for n in (1, 4))
    assert 3 * again <= kept


@pytest.mark.long
def test_parts_of_the_points_give_the_same_energy():
    energies = []
    for core, args in (in_parts(1), in_parts(4)):
        found = jax.jit(core)(*args)
        energies.append(sum(float(t.hi) + float(t.lo) for t in found.terms))
    assert energies[1] == pytest.approx(energies[0], abs=3e-5)


@pytest.fixture(scope="module")
def turned():
    """Water's families on one tile that has too little room: for rows, and also for G."""
    plans = [in_turns(PLAN, Room(k * KIB, 1024)) for k in range(500, 20, -1)]
    only = next(p for p in plans if p.turns and not p.stored)
    return only, next(p for p in plans if 0 < p.stored < len(p.turns))


def test_every_vertex_has_its_turn(turned):
    for plan in turned:
        assert len(plan.turns) > 1
        assert plan.turns[-1] == len(plan.classes)
        for c in PLAN.classes:
            parts = [x for x in plan.classes if x.groups == c.groups]
            for name in ("shells", "element", "weight"):
                joined = np.concatenate([getattr(x, name) for x in parts])
                np.testing.assert_array_equal(joined, getattr(c, name))
            for name in ("tiles", "piece_tiles", "piece_workers"):
                assert sum((getattr(x, name) for x in parts), ()) == getattr(c, name)


def density(shape):
    values = np.random.default_rng(3).normal(size=shape.n_pairs)
    return jnp.asarray(values / shape.n_ao, np.float32)


@pytest.mark.long
def test_g_d_is_the_same(water, turned):
    d = density(SHAPE)

    def of(plan):
        def run(d):
            blocks = host_supermatrix(plan, water, EXCHANGE)
            return family_repulsion(plan, blocks, d)

        return jax.jit(run)(d)

    (expected, energy), (found, other) = of(PLAN), of(turned[1])
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)
    assert float(other.value()) == pytest.approx(float(energy.value()), abs=1e-6)


@pytest.fixture(scope="module")
def hydrogen():
    """Its atoms, its families on two tiles, and the same without any room: all of G is stored."""
    shape = shape_of(HYDROGEN.numbers, "sto-3g", False, 0)
    settings = Settings(grid_level=0)
    arrays = tables.shape_tables(shape, settings), conformer.conformer(HYDROGEN, shape, settings)
    atoms = jax.jit(lambda t, c: gather_atoms(tile_plan(shape), t, c, np.float32))(*arrays)
    plan = family_plan(shape, 2)
    some = in_turns(plan, Room(0, 1024))
    assert some.stored == len(some.turns) > 1
    return atoms, plan, some


@pytest.mark.parametrize("supermatrix", [family_supermatrix, host_supermatrix])
def test_vertices_in_turns_compute_the_same(hydrogen, supermatrix):
    atoms, *plans = hydrogen
    d = density(atoms.layout.shape)
    expected, found = (
        jax.jit(lambda d, p=p: family_repulsion(p, supermatrix(p, atoms, EXCHANGE), d))(d)
        for p in plans
    )
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-6)
    assert float(found[1].value()) == pytest.approx(float(expected[1].value()), abs=1e-6)


def two_products(atoms, plan):
    """The profile of G and of two products with it."""

    def run(atoms, d):
        blocks = family_supermatrix(plan, atoms, EXCHANGE)
        once = family_repulsion(plan, blocks, d)[0]
        return family_repulsion(plan, blocks, once)[0]

    return profile_of(run, BOW, atoms, density(atoms.layout.shape))


def stored_bytes(plan):
    """Of the blocks of G that are off the chip."""
    first = next(part.start for part, off in plan.by_turns() if off)
    kinds = [plan.kinds(c) for c in plan.classes[first:]]
    sizes = [np.prod([k.n_functions for k in four]) for four in kinds]
    count = [c.shells.shape[0] * c.shells.shape[1] for c in plan.classes[first:]]
    return 12 * sum(int(n) * int(size) for n, size in zip(count, sizes, strict=True))


def loaded_bytes(profile):
    moves = [s for s, _ in profile.steps() if "streaming memory" in s.name]
    return sum(s.moved_bytes for s in moves if s.name.startswith("load"))


def test_what_is_stored_is_charged(hydrogen):
    atoms, plan, some = hydrogen
    whole, stored = (two_products(atoms, p) for p in (plan, some))
    assert (whole.memory.streaming_bytes, loaded_bytes(whole)) == (0, 0)
    assert stored.memory.streaming_bytes == stored_bytes(some) > 0
    assert loaded_bytes(stored) == 2 * stored_bytes(some)  # once for each G d


@pytest.mark.long
def test_turns_need_less_memory_and_what_is_stored_travels_no_further(water, turned):
    whole, turns, stored = (two_products(water, plan) for plan in (PLAN, *turned))
    fullest = [p.memory.by_category["Variables"].max() for p in (whole, turns)]
    assert fullest[0] > 1.2 * fullest[1] > 0
    assert whole.memory.streaming_bytes == turns.memory.streaming_bytes == 0
    loaded = loaded_bytes(stored)
    assert loaded == 2 * stored.memory.streaming_bytes == 2 * stored_bytes(turned[1])
    # Blocks come back to their own tiles: only densities travel more often between tiles.
    between = [
        sum(s.moved_bytes for s, _ in p.steps() if (s.stage, s.name) == ("repulsion", "exchange"))
        for p in (turns, stored)
    ]
    assert between[0] < between[1] < between[0] + 0.5 * loaded


def test_a_machine_takes_turns_where_it_must():
    """A chip with little memory: the program of the same molecule keeps G in DRAM."""
    small = Quantity(120 * KIB, "B", "estimated", "a test")
    tiny = replace(BOW, memory_bytes_per_tile=small)
    settings = Settings(grid_level=0, xc="hf")

    def streamed(target):
        core, args = rks_core(HYDROGEN, settings, lambda shape: machine_of(target, 1, shape))
        return memory_of(core, target, 1, *args).streaming_bytes

    assert streamed(tiny) > 0
    assert streamed(BOW) == 0
