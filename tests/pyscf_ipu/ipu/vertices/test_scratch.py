"""Memory inside vertices."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from pyscf_ipu.ipu.vertices.scratch import scratch_bytes

V = jax.ShapeDtypeStruct((8,), jnp.float32)
M = jax.ShapeDtypeStruct((8, 8), jnp.float32)


def of(fn, *args):
    return scratch_bytes(jax.make_jaxpr(fn)(*args).jaxpr)


def twice(x):
    return jnp.where(x > 0, x, 2 * x)  # a call, in a jaxpr


@pytest.mark.parametrize(
    ("fn", "args", "expected"),
    [
        (lambda x: jnp.exp(x * x) + 1, (V,), 0),  # one loop, in registers
        (lambda x: x @ x, (M,), 0),  # argument and result
        (lambda x: (2 * x) @ x, (M,), 256),  # a product reads memory
        (lambda x: (2 * x).T @ x, (M,), 256),  # through a view
        (lambda x: twice(x) @ twice(twice(x)), (M,), 512),  # two calls, two arrays
        (lambda x: ((x @ x) @ x) @ x, (M,), 512),  # one dies when the next but one is made
        (lambda x: jnp.exp(x) / jnp.exp(x).sum(), (V,), 4),  # the sum alone
    ],
)
def test_what_is_stored(fn, args, expected):
    assert of(fn, *args) == expected


def test_a_loop_needs_its_own_scratch_once():
    def body(x, _):
        return (2 * x) @ x, None

    once = of(lambda x: body(x, None)[0], M)
    assert of(lambda x: lax.scan(body, x, length=9)[0], M) == once == 256


def test_branches_need_the_larger():
    def fn(x):
        return lax.cond(x[0, 0] > 0, lambda y: (2 * y) @ y, lambda y: y, x)

    assert of(fn, M) >= 256
