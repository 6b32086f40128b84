"""`tile_map` is a primitive with all its rules: it must mean the same as vmap everywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from pyscf_ipu.tiles import TileShardedArray, tile_map, tile_put_replicated, tile_put_sharded

TILES = (0, 3, 3, 5)
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(4, 3)), jnp.float32)
Y = jnp.asarray(RNG.normal(size=(4, 3, 2)), jnp.float32)
CONSTANT = jnp.asarray(RNG.normal(size=3), jnp.float32)


def vertex(x, y):
    """Two results, the second not linear."""
    return x @ y, {"energy": jnp.sum(jnp.sin(x)[:, None] * y * y)}


def mapped(x, y):
    out = tile_map(vertex, tile_put_sharded(x, TILES), tile_put_sharded(y, TILES))
    assert all(isinstance(leaf, TileShardedArray) for leaf in (out[0], out[1]["energy"]))
    return out[0].array, {"energy": out[1]["energy"].array}


def assert_same(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_it_is_vmap_over_tiles(compiled):
    run = jax.jit(mapped) if compiled else mapped
    assert_same(run(X, Y), jax.vmap(vertex)(X, Y))


def test_the_compute_set_stays_visible():
    jaxpr = jax.make_jaxpr(mapped)(X, Y)
    (equation,) = [e for e in jaxpr.eqns if e.primitive.name == "tile_map"]
    assert equation.params["tiles"] == TILES
    assert equation.params["name"] == "vertex"
    named = jax.make_jaxpr(
        lambda x: tile_map(jnp.sin, tile_put_sharded(x, TILES), name="wave").array
    )
    assert "name=wave" in str(named(X))


def test_results_keep_the_tiles():
    out = tile_map(jnp.sum, tile_put_sharded(X, TILES))
    assert out.tiles == TILES
    assert out.shape == (4,)


def test_captured_arrays_are_shared():
    def with_constant(x):
        return x * CONSTANT

    out = jax.jit(lambda x: tile_map(with_constant, tile_put_sharded(x, TILES)).array)(X)
    np.testing.assert_allclose(out, X * CONSTANT, rtol=1e-6)


def test_batches_of_molecules():
    xs, ys = jnp.stack([X, 2 * X]), jnp.stack([Y, -Y])
    assert_same(jax.vmap(mapped)(xs, ys), jax.vmap(jax.vmap(vertex))(xs, ys))
    assert_same(
        jax.vmap(mapped, in_axes=(0, None))(xs, Y), jax.vmap(jax.vmap(vertex), (0, None))(xs, Y)
    )
    moved = jnp.moveaxis(xs, 0, 2)  # the batch on another axis
    assert_same(jax.vmap(mapped, (2, None))(moved, Y), jax.vmap(mapped, (0, None))(xs, Y))


def test_a_batch_of_captured_arrays():
    def run(scale, x):
        return tile_map(lambda row: row * scale, tile_put_sharded(x, TILES)).array

    scales = jnp.asarray([1.0, -2.0], jnp.float32)
    found = jax.vmap(run, (0, None))(scales, X)
    np.testing.assert_allclose(found, scales[:, None, None] * X, rtol=1e-6)


def test_tangents():
    dx, dy = jnp.cos(X), jnp.ones_like(Y)
    assert_same(jax.jvp(mapped, (X, Y), (dx, dy)), jax.jvp(jax.vmap(vertex), (X, Y), (dx, dy)))
    only_x = jax.jvp(lambda x: mapped(x, Y), (X,), (dx,))
    assert_same(only_x, jax.jvp(lambda x: jax.vmap(vertex)(x, Y), (X,), (dx,)))


@pytest.mark.parametrize("argument", [0, 1])
def test_gradients(argument):
    def loss(run):
        def total(x, y):
            a, b = run(x, y)
            return jnp.sum(a * a) + jnp.sum(b["energy"])

        return jax.jit(jax.grad(total, argument))

    assert_same(loss(mapped)(X, Y), loss(jax.vmap(vertex))(X, Y))


def test_gradients_of_a_batch_and_second_derivatives():
    def energy(x):
        return jnp.sum(tile_map(lambda r: jnp.sin(r) * r, tile_put_sharded(x, TILES)).array)

    xs = jnp.stack([X, 0.3 * X])
    expected = jnp.cos(xs) * xs + jnp.sin(xs)
    np.testing.assert_allclose(jax.vmap(jax.grad(energy))(xs), expected, rtol=1e-5, atol=1e-6)
    check_grads(jax.jit(energy), (X,), order=2, modes=["fwd", "rev"], rtol=2e-2, atol=2e-2)


def test_gradients_reach_a_replicated_argument():
    def run(weights, x):
        shared = tile_put_replicated(weights, TILES)
        return jnp.sum(tile_map(lambda w, r: w @ r, shared, tile_put_sharded(x, TILES)).array)

    found = jax.grad(run)(CONSTANT, X)
    np.testing.assert_allclose(found, X.sum(0), rtol=1e-6)


def test_captured_arrays_refuse_derivatives():
    def run(scale):
        return jnp.sum(tile_map(lambda r: r * scale, tile_put_sharded(X, TILES)).array)

    with pytest.raises(NotImplementedError, match="pass them as arguments"):
        jax.grad(run)(jnp.float32(2.0))


def test_no_implicit_exchange():
    with pytest.raises(ValueError, match=r"different tiles.*tile_gather"):
        tile_map(vertex, tile_put_sharded(X, TILES), tile_put_sharded(Y, (0, 1, 2, 3)))
    with pytest.raises(ValueError, match="at least one"):
        tile_map(lambda: jnp.float32(0))


@pytest.mark.parametrize("together", [True, 1, 2, 3, 4, 9])
def test_some_vertices_at_a_time(together):
    """The number that runs side by side changes no result: 4 vertices, in groups even and not."""

    def run(x, y):
        args = tile_put_sharded(x, TILES), tile_put_sharded(y, TILES)
        out = tile_map(vertex, *args, together=together)
        return out[0].array, {"energy": out[1]["energy"].array}

    def loss(run):
        return jax.grad(lambda x: sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(run(x, Y))))

    assert_same(jax.jit(run)(X, Y), jax.vmap(vertex)(X, Y))
    assert_same(jax.jit(loss(run))(X), loss(jax.vmap(vertex))(X))
    xs = jnp.stack([X, 2 * X])
    expected = jax.vmap(lambda x: jax.vmap(vertex)(x, Y))(xs)
    assert_same(jax.vmap(run, (0, None))(xs, Y), expected)


def test_captured_arrays_are_shared_by_groups():
    def run(x):
        mapped = tile_map(lambda row: row * CONSTANT, tile_put_sharded(x, TILES), together=3)
        return mapped.array

    np.testing.assert_allclose(jax.jit(run)(X), X * CONSTANT, rtol=1e-6)


@pytest.mark.parametrize("together", [0, -2])
def test_no_vertex_at_a_time_is_refused(together):
    with pytest.raises(ValueError, match="at least one vertex"):
        tile_map(jnp.sin, tile_put_sharded(X, TILES), together=together)
