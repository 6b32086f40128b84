"""Vertices that declare their price: `create_ipu_tile_primitive`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.ipu import BOW, simulate
from pyscf_ipu.tiles import create_ipu_tile_primitive, tile_map, tile_put_sharded

TILES = (0, 0, 5)
X = np.arange(96, dtype=np.float32).reshape(3, 32)

scaled = create_ipu_tile_primitive(
    "scaled",
    lambda x: 2.0 * x,
    perf_estimate=lambda target, x: (10.0 * x.shape[0], 30.0 * x.shape[0]),
    tmp_space=lambda x: 100 * x.shape[0],
)


def on_tiles(x):
    return tile_map(scaled, tile_put_sharded(x, TILES)).array


def vertex_of(profile):
    (step,) = [s for s, _ in profile.steps() if s.kind == "compute"]
    return step


def test_cycles_are_the_declared_ones():
    found, profile = simulate(on_tiles, BOW)(X)
    step = vertex_of(profile)
    launch, workers = float(BOW.supervisor_launch_cycles), int(BOW.num_worker_contexts)
    np.testing.assert_array_equal(found, 2 * X)
    assert step.name == "scaled"
    assert step.how == "estimated"
    assert step.cycles.low == launch + workers * 10 * 32
    assert step.cycles.high == launch + workers * 30 * 32


def test_scratch_is_for_every_worker():
    scratch = simulate(on_tiles, BOW)(X)[1].memory.by_category["Vertex Scratch"]
    assert scratch[0] == 2 * 3200
    assert scratch[5] == 3200
    assert scratch[1:5].sum() == 0


def test_a_batch_costs_its_size_and_a_derivative_is_counted():
    batch = jnp.stack([X] * 4)
    one = vertex_of(simulate(on_tiles, BOW)(X)[1])
    four = vertex_of(simulate(jax.vmap(on_tiles), BOW)(batch)[1])
    launch = float(BOW.supervisor_launch_cycles)
    assert four.cycles.low - launch == 4 * (one.cycles.low - launch)

    def gradient(x):
        return jax.grad(lambda y: on_tiles(y).sum())(x)

    found, profile = simulate(gradient, BOW)(X)
    np.testing.assert_array_equal(found, 2 * np.ones_like(X))
    assert "counted" in {s.how for s, _ in profile.steps() if s.name == "scaled"}


@pytest.mark.parametrize("estimate", [-1.0, float("nan"), (3.0, 2.0)])
def test_an_impossible_estimate_names_the_vertex(estimate):
    vertex = create_ipu_tile_primitive("odd", jnp.sin, perf_estimate=lambda target, x: estimate)
    with pytest.raises(ValueError, match="'odd' estimates"):
        simulate(lambda x: tile_map(vertex, tile_put_sharded(x, TILES)).array, BOW)(X)


def test_a_number_is_not_a_function_of_shapes():
    with pytest.raises(TypeError, match="perf_estimate"):
        create_ipu_tile_primitive("fixed", jnp.sin, perf_estimate=100)
