"""`simulate`: outputs of the plain call, steps as the rules say, memory, errors."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pyscf_ipu.ipu import BOW, RULES, Float64OnIpuError, Quantity, TileMemoryError, simulate
from pyscf_ipu.ipu.chip.popops import binary_1d
from pyscf_ipu.ipu.chip.transfer import exchange_cycles
from pyscf_ipu.ipu.steps.places import linear
from pyscf_ipu.tiles import tile_gather, tile_map, tile_put_replicated, tile_put_sharded

X = np.linspace(0.1, 1.0, 4096, dtype=np.float32)


def steps(profile, kind):
    return [(s, n) for s, n in profile.steps() if s.kind == kind]


def test_outputs_are_those_of_the_jitted_function():
    def fn(x, y):
        return {
            "sum": jnp.sum(x * y),
            "max": lax.while_loop(lambda v: v < 3, lambda v: v * 1.5, x[0]),
        }

    outputs, profile = simulate(fn, BOW)(X, X)
    expected = jax.jit(fn)(X, X)
    assert outputs["sum"] == expected["sum"]
    assert outputs["max"] == expected["max"]
    assert profile.cycles.low > 0
    assert profile.unknown_ops == {}


def test_one_addition_costs_what_poplibs_says():
    _, profile = simulate(lambda x, y: x + y, BOW)(X, X)
    ((step, n),) = steps(profile, "compute")
    on_a_tile = linear(X.size, 4, 1472).elements.max()
    assert n == 1
    assert step.cycles.low == binary_1d("add", int(on_a_tile))
    assert steps(profile, "exchange") == []


def test_elementwise_operations_fuse():
    _, profile = simulate(lambda x, y: jnp.exp(x * y + x) - y, BOW)(X, X)
    ((step, _),) = steps(profile, "compute")
    single = [simulate(f, BOW)(X)[1].cycles.low for f in (lambda x: x * x, jnp.exp)]
    assert max(single) < step.cycles.low < 4 * max(single)


def test_a_compute_set_waits_for_its_busiest_worker():
    """Seven vertices on one tile: the six workers need two turns."""

    def cycles(count):
        tiles = (3,) * count

        def fn(x):
            return tile_map(lambda r: r * r, tile_put_sharded(x, tiles), name="square").array

        x = np.ones((count, 512), np.float32)
        (found,) = [s for s, _ in steps(simulate(fn, BOW)(x)[1], "compute")]
        return found.cycles.low

    launch = float(BOW.supervisor_launch_cycles)
    assert cycles(6) == cycles(1)
    assert cycles(7) - launch == 2 * (cycles(6) - launch)
    assert cycles(1) - launch == 6 * 512 / 2  # one product per 64-bit vector


def test_vertices_of_one_compute_set_run_side_by_side_unless_they_depend():
    x = np.ones((4, 64), np.float32)

    def independent(x):
        a = tile_map(lambda r: r + 1.0, tile_put_sharded(x, (1, 2, 3, 4)), name="a")
        b = tile_map(lambda r: r * 2.0, tile_put_sharded(x, (5, 6, 7, 8)), name="b")
        return a.array, b.array

    def dependent(x):
        a = tile_map(lambda r: r + 1.0, tile_put_sharded(x, (1, 2, 3, 4)), name="a")
        return tile_map(lambda r: r * 2.0, tile_gather(a, (3, 2, 1, 0), a.tiles), name="b").array

    first, second = (simulate(f, BOW)(x)[1] for f in (independent, dependent))
    assert len(steps(first, "compute")) == 1
    assert len(steps(second, "compute")) == 2
    assert len(steps(second, "exchange")) == 2


def test_an_exchange_takes_as_long_as_its_busiest_tile():
    x = np.ones(1000, np.float32)

    def fn(x):
        return tile_map(jnp.sum, tile_put_replicated(x, range(1, 9)), name="sum").array

    ((step, _),) = steps(simulate(fn, BOW)(x)[1], "exchange")
    assert step.cycles.low == 1000 * 4 / 4
    assert step.cycles.low == exchange_cycles(BOW, np.array([0.0, 4000.0]), np.array([4000.0, 0.0]))


def test_loops_count_their_real_trips():
    def fn(x):
        return lax.while_loop(lambda v: v[0] < 100.0, lambda v: v * 2.0, x)

    one, _ = simulate(fn, BOW), None
    short, long = (one(np.full(256, v, np.float32))[1] for v in (60.0, 1.0))
    products = [sum(n for s, n in steps(p, "compute") if "mul" in s.name) for p in (short, long)]
    assert products == [1, 7]


def test_what_has_no_rule_is_named_and_makes_a_lower_bound():
    _, profile = simulate(lambda x: jnp.cumsum(lax.lgamma(x)), BOW)(X)
    assert profile.unknown_ops == {"lgamma": 1}
    assert profile.to_dict()["cycles"]["is_lower_bound"]
    known = simulate(lambda x: lax.lgamma(x), BOW, rules={**RULES, "lgamma": RULES["exp"]})
    with pytest.raises(KeyError, match="lgamma"):  # the rule needs PopLibs's figure
        known(X)


def test_float64_is_an_error_that_names_the_operation():
    with jax.enable_x64(True), pytest.raises(Float64OnIpuError, match="mul computes in float64"):
        simulate(lambda x: x * 2.0, BOW)(X.astype(np.float64))


def test_memory_is_that_of_the_live_arrays():
    n = 1472 * 64
    x = np.ones(n, np.float32)

    def fn(x):
        a = jnp.exp(x)
        b = a + x
        return b * 2.0

    memory = simulate(fn, BOW)(x)[1].memory
    assert memory.by_category["Variables"].max() == 3 * 64 * 4  # x, a and b; then b and the result


def test_a_tile_that_overflows_is_reported_and_raises_if_strict():
    x = np.ones(300_000, np.float32)

    def fn(x):
        return tile_map(lambda r: r + 1.0, tile_put_sharded(x[None], (7,)), name="big").array

    _, profile = simulate(fn, BOW)(x)
    assert 7 in profile.memory.overflowing
    assert profile.memory.largest[0].tile_bytes == 1_200_000
    with pytest.raises(TileMemoryError, match="tiles need up to"):
        simulate(fn, BOW, strict=True)(x)


def test_more_ipus_have_more_tiles_and_pay_for_their_links():
    x = np.ones((64, 4096), np.float32)
    one, four = (simulate(lambda x: jnp.sum(x.T + x.T, axis=1), BOW, n)(x)[1] for n in (1, 4))
    assert four.n_tiles == 4 * one.n_tiles
    assert any(s.name == "links between IPUs" for s, _ in four.steps())
    with pytest.raises(ValueError, match="num_ipus=0"):
        simulate(lambda x: x, BOW, 0)


def test_a_figure_that_is_not_known_is_asked_for():
    broken = dataclasses.replace(
        BOW, exchange_bytes_per_cycle=Quantity(None, "B/cycle", "unknown", "no figure: test")
    )
    with pytest.raises(ValueError, match="no figure: test"):
        simulate(lambda x: jnp.sum(x), broken)(X)


def test_values_travel_into_a_loop_and_out_of_a_branch():
    """What lies elsewhere than the loop or branch wants it is fetched: once, not every turn."""

    def loop(x):
        start = tile_map(lambda r: r + 1.0, tile_put_sharded(x, (1, 2, 3, 4)), name="a").array
        return lax.fori_loop(0, 5, lambda _, c: c * 2.0, start.T)

    def branch(x):
        return lax.cond(x[0, 0] > 0, lambda y: y.T, lambda y: y.T + 1.0, x)

    x = np.ones((4, 4), np.float32)
    moved = [n for s, n in steps(simulate(loop, BOW)(x)[1], "exchange") if s.moved_bytes == 64]
    assert moved == [1, 1]  # onto the four tiles, and from there into the loop
    assert sum(s.moved_bytes * n for s, n in steps(simulate(branch, BOW)(x)[1], "exchange")) >= 64
