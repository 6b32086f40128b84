"""Loops that end at different times: the price against sums written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pyscf_ipu.ipu import BOW, simulate
from pyscf_ipu.ipu.profile.data import Repeat
from pyscf_ipu.ipu.simulate import memory_of, profile_of
from pyscf_ipu.tiles import create_ipu_tile_primitive, tile_map, tile_put_sharded

WORKERS, TILES, LAUNCH = 6, 1472, 11
TEST, TURN = 14, 14 + 1 + 1 + 1 + 1  # a comparison; besides it sub, mul, add and a jump


def walk(n):
    """Turns of a loop: its value does not decide how many."""

    def step(state):
        k, y = state
        return k - 1, y * 1.5 + 0.5

    return lax.while_loop(lambda s: s[0] > 0, step, (n, jnp.float32(0)))[1]


def on_tiles(n):
    """A vertex for each number, as many on each tile."""
    tiles = np.repeat(np.arange(TILES), len(n) // TILES)
    return tile_map(walk, tile_put_sharded(n, tuple(tiles.tolist())), name="walk").array


def by_hand(trips):
    """The slowest worker of the slowest tile; a worker has every sixth vertex of its tile."""
    workers = (TEST + TURN * trips.astype(float)).reshape(TILES, -1, WORKERS).sum(1)
    return LAUNCH + WORKERS * workers.max()


def random_trips(*shape):
    return np.random.default_rng(0).integers(1, 1001, shape).astype(np.int32)


def walked(profile):
    """Cycles of the vertices that walk, of all steps together."""
    names = "walk", "while by lane"
    return sum(s.cycles.low * n for s, n in profile.steps() if s.name in names)


@pytest.mark.parametrize("fn", [on_tiles, jax.vmap(walk)], ids=["tile_map", "vmap"])
@pytest.mark.parametrize("each", [1, 3])
def test_a_worker_pays_its_own_turns(fn, each):
    trips = random_trips(TILES * WORKERS * each)
    outputs, profile = simulate(fn, BOW)(trips)
    np.testing.assert_array_equal(outputs, jax.jit(fn)(trips))
    assert walked(profile) == pytest.approx(by_hand(trips), rel=1e-6)
    assert profile.cycles.low == pytest.approx(by_hand(trips), rel=0.01)
    assert not profile.unknown_ops
    load = profile.tile_compute
    (step,) = [s for s, _ in profile.steps() if s.kind == "compute"]
    assert (load.max(), load.mean() / load.max()) == pytest.approx((walked(profile), step.balance))
    assert step.flops == pytest.approx(trips.size + 4.0 * trips.sum())  # of which one compares


@pytest.mark.parametrize("fn", [on_tiles, jax.vmap(walk)], ids=["tile_map", "vmap"])
def test_a_step_ends_with_its_slowest_tile(fn):
    """The sum of the slowest of each step is far more than the slowest sum."""
    trips = random_trips(5, TILES * WORKERS)
    trips[2] = 0

    def steps(trips):
        return lax.map(fn, trips)

    hand = sum(by_hand(some) for some in trips)
    assert hand > 1.05 * (by_hand(trips.sum(0)) - LAUNCH)
    outputs, profile = simulate(steps, BOW)(trips)
    np.testing.assert_array_equal(outputs, jax.jit(steps)(trips))
    assert walked(profile) == pytest.approx(hand, rel=1e-5)

    def as_many(trips, n):
        def step(state):
            k, total = state
            return k + 1, total + fn(trips[k])

        return lax.while_loop(lambda s: s[0] < n, step, (0, jnp.zeros(trips.shape[1])))

    _, profile = simulate(as_many, BOW)(trips, 2)
    assert walked(profile) == pytest.approx(sum(by_hand(x) for x in trips[:2]), rel=1e-5)


def test_a_worker_pays_the_branch_that_it_takes():
    n = np.arange(1, 13, dtype=np.float32)

    def vertex(x):
        return lax.cond(x > 10.0, lambda x: jnp.exp(jnp.exp(x * 0.1)), lambda x: x * 2.0, x)

    def fn(x):
        return tile_map(vertex, tile_put_sharded(x, range(12)), name="branch").array

    _, profile = simulate(fn, BOW)(n)
    asked = 14 + 2 + 1  # a comparison, the number of the branch, a jump
    assert profile.tile_compute[:9].tolist() == [LAUNCH + WORKERS * (asked + 1)] * 9
    assert profile.tile_compute[10] == LAUNCH + WORKERS * (asked + 1 + 6 + 6)
    assert simulate(fn, BOW)(n[:12] * 0.1)[1].tile_compute[10] == profile.tile_compute[0]


def test_two_vertices_side_by_side_and_shared_ones():
    trips = np.array([5, 900, 40], np.int32)

    def both(n, m):
        one = tile_map(walk, tile_put_sharded(n, (1, 2, 3)), name="walk_one")
        two = tile_map(walk, tile_put_sharded(m, (2, 3, 4)), name="walk_two")
        return one.array, two.array

    _, profile = simulate(both, BOW)(trips, trips + 7)
    (step,) = [s for s, _ in profile.steps() if s.name == "walk*"]
    assert step.cycles.low == LAUNCH + WORKERS * (TEST + TURN * 907)
    assert profile.tile_compute[2] - profile.tile_compute[1] > 1e4  # 900 turns beside 12

    def shared(n):
        return tile_map(walk, tile_put_sharded(n, (1, 1, 1)), name="walk", shared=True).array

    assert walked(simulate(shared, BOW)(trips)[1]) == pytest.approx(
        LAUNCH + 3 * TEST + TURN * trips.sum()
    )


def test_a_batch_of_vertices_has_its_lanes_in_turn():
    trips = random_trips(4, 8)

    def fn(n):
        return tile_map(walk, tile_put_sharded(n, range(8)), name="walk").array

    slowest = (TEST + TURN * trips).sum(0).max()
    assert walked(simulate(jax.vmap(fn), BOW)(trips)[1]) == LAUNCH + WORKERS * slowest


def test_declared_cycles_need_no_counting():
    vertex = create_ipu_tile_primitive("walk", walk, perf_estimate=lambda *_: 100.0)

    def fn(n):
        return tile_map(vertex, tile_put_sharded(n, range(8))).array

    assert walked(simulate(fn, BOW)(random_trips(8))[1]) == LAUNCH + WORKERS * 100


def nested(n):
    """Turns of an inner loop that depend on the outer one."""

    def step(state):
        k, y = state
        return k - 1, y + walk(k % 5)

    return lax.while_loop(lambda s: s[0] > 0, step, (n, jnp.float32(0)))[1]


def in_a_scan(n):
    return lax.scan(lambda c, k: (c + walk(n - k), None), jnp.float32(0), jnp.arange(3))[0]


def in_a_branch(n):
    return lax.cond(n % 2 == 0, walk, lambda n: n.astype(jnp.float32), n)


def bounded(n):
    return lax.fori_loop(0, n, lambda i, y: y.at[i % 4].add(y[(i + 1) % 4] + 1.0), jnp.zeros(4))


def with_a_branch(n):
    def step(state):
        k, y = state
        return k - 1, lax.cond(k % 2 == 0, lambda y: y * 2.0, lambda y: y + 1.0, y)

    return lax.while_loop(lambda s: s[0] > 0, step, (n, jnp.float32(0)))[1]


def matrices(n):
    """A body that moves axes in all ways that a vertex knows."""
    fixed = jnp.asarray(np.random.default_rng(1).normal(size=(6, 6)), jnp.float32) / 6

    def step(state):
        k, x = state
        y = jnp.matmul(fixed, jnp.matmul(x, fixed, precision="highest"), precision="highest")
        y = jnp.concatenate([y[2:], y[:2].T.reshape(2, 6)[::-1]])
        y = jnp.stack(jnp.unstack(y, axis=1)[::-1], axis=1)
        y = lax.dynamic_update_slice(y, lax.dynamic_slice(x, (k % 5, 1), (2, 3)), (1, k % 4))
        in_order = jnp.sort(jnp.pad(y, 1), axis=1)[:, 1:7]
        sums, _ = lax.scan(lambda c, row: (c + row, c), y[0], in_order)
        return k - 1, jnp.tanh(y + sums + jnp.argmax(y, axis=0).astype(jnp.float32))

    return lax.while_loop(lambda s: s[0] > 0, step, (n, jnp.eye(6)))[1]


PROGRAMS = [walk, nested, in_a_scan, in_a_branch, bounded, with_a_branch, matrices]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shape", [(12,), (1,), (3, 4)])
def test_a_batch_is_cheaper_than_lock_step_and_has_the_outputs_of_the_plain_call(program, shape):
    fn = jax.jit(jax.vmap(program))
    for _ in shape[1:]:
        fn = jax.vmap(fn, in_axes=1, out_axes=1)
    trips = (np.arange(12, dtype=np.int32) % 7)[: np.prod(shape)].reshape(shape) + 1
    outputs, profile = simulate(fn, BOW)(trips)
    np.testing.assert_array_equal(outputs, fn(trips))
    assert "is priced by lane" in profile.notes[-1]
    assert not profile.unknown_ops
    assert profile_of(fn, BOW, trips).cycles.low == pytest.approx(profile.cycles.low)
    assert memory_of(fn, BOW, 1, trips).per_tile.max() == profile.memory.per_tile.max()


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_price_of_a_lane_is_that_of_a_vertex(program):
    """Lanes on tiles of their own: the body costs what it costs without the batch."""
    trips = np.array([9, 2, 4], np.int32)

    def vertices(n):
        return tile_map(program, tile_put_sharded(n, range(3)), name="walk").array

    lanes, alone = (simulate(f, BOW)(trips)[1] for f in (jax.vmap(program), vertices))
    if program in (walk, nested, bounded, matrices):  # a batch takes both branches, and scans twice
        assert walked(lanes) == pytest.approx(walked(alone), rel=0.15)
    assert np.count_nonzero(lanes.tile_compute > 100) >= 3


def shifted(y):
    return lax.ppermute(y, "i", [(k, (k + 1) % 4) for k in range(4)])


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (lambda y: lax.psum(y, "i"), "psum"),
        (shifted, "gather"),
        (lambda y: jnp.max(lax.all_gather(y, "i")), "reduce_max"),
        (lambda y: jnp.linalg.eigh(y * jnp.eye(2))[0][1], "eigh"),
        (lax.lgamma, "lgamma"),
        (lambda y: tile_map(jnp.exp, tile_put_sharded(y[None], (1,))).array[0], "tile_map"),
    ],
)
def test_what_a_lane_cannot_do_alone_is_in_lock_step(op, name):
    def fn(n):
        def step(state):
            k, y = state
            return k - 1, op(y) * 0.1

        return lax.while_loop(lambda s: s[0] > 0, step, (n, jnp.float32(1)))[1]

    trips, batched = np.array([1, 5, 2, 3], np.int32), jax.vmap(fn, axis_name="i")
    outputs, profile = simulate(batched, BOW)(trips)
    np.testing.assert_array_equal(outputs, jax.jit(batched)(trips))
    assert f"a loop over a batch of 4 is in lock-step: no vertex of one lane does its {name}" in (
        profile.notes
    )
    assert [step.count for step in profile.program if isinstance(step, Repeat)] == [5]


def test_large_lanes_are_cheaper_in_lock_step_and_larger_ones_do_not_fit():
    def fn(n, x):
        def step(state):
            k, y = state
            return k - 1, jnp.matmul(y, y, precision="highest")

        return lax.while_loop(lambda s: s[0] > 0, step, (n, x))[1]

    trips = np.array([3, 2], np.int32)
    note = simulate(jax.vmap(fn), BOW)(trips, np.ones((2, 96, 96), np.float32))[1].notes[-1]
    assert "is priced in lock-step" in note
    note = simulate(jax.vmap(fn), BOW)(trips, np.ones((2, 300, 300), np.float32))[1].notes[-1]
    assert "does its part in the memory of a tile" in note


def test_what_never_runs_costs_nothing():
    trips = np.arange(9, dtype=np.int32)

    def never(n):
        start = 0, n.astype(jnp.float32)
        return lax.while_loop(lambda s: s[0] < 0, lambda s: (s[0], jax.vmap(walk)(n)), start)[1]

    def not_taken(n, taken):
        return lax.cond(taken, jax.vmap(walk), lambda n: n.astype(jnp.float32), n)

    for fn, args in [
        (never, (trips,)),
        (not_taken, (trips, False)),
        (jax.vmap(walk), (trips[:0],)),
    ]:
        outputs, profile = simulate(fn, BOW)(*args)
        np.testing.assert_array_equal(outputs, jax.jit(fn)(*args))
        assert walked(profile) == 0
        assert not [note for note in profile.notes if "a loop over a batch" in note]


def test_no_turn_costs_little_and_float64_is_refused():
    _, profile = simulate(jax.vmap(walk), BOW)(np.zeros(9, np.int32))
    assert profile.cycles.low < 1000
    with jax.enable_x64(True), pytest.raises(ValueError, match="float64"):
        simulate(jax.vmap(lambda n: nested(n) * jnp.float64(2)), BOW)(np.ones(9, np.int32))
