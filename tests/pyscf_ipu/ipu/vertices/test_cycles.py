"""Cycles counted from vertex programs, against counts by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pyscf_ipu.ipu import BOW
from pyscf_ipu.ipu.vertices.cycles import count

X = jnp.ones((4, 30), jnp.float32)


def counted(fn, *args, known=()):
    return count(jax.make_jaxpr(fn)(*args).jaxpr, known)


@pytest.mark.parametrize(
    ("fn", "cycles"),
    [
        (lambda x: x + x, 60),  # 120 elements, two to a vector, one cycle
        (jnp.exp, 360),
        (lambda x: x / x, 600),
        (lambda x: x.T.reshape(-1)[3:9], 0),  # names of elements
        (lambda x: jnp.sum(x, axis=0), 60),
        (lambda x: lax.scan(lambda y, _: (y * y, None), x, length=5)[0], 300),
        (lambda x: jax.jit(lambda y: y * y)(x) * x, 120),
    ],
)
def test_vector_cycles(fn, cycles):
    cost = counted(fn, X)
    assert cost.vector_cycles == cycles
    assert not cost.unknown


def test_matrix_products_run_on_the_matrix_unit_or_on_the_vector_unit():
    cost = counted(lambda x: x @ x.T, X)
    assert cost.multiply_adds == 4 * 30 * 4
    assert cost.low(BOW) == 2 * 480 / 32
    assert cost.high(BOW) == pytest.approx(2 * 480 / 4 * 7.44)


def test_constants_are_worked_out_by_the_compiler():
    index = np.array([3, 1, 2])

    def fn(table, x):
        return x[table + 1]

    free = counted(fn, jnp.asarray(index), X[0], known=(True, False))
    paid = counted(fn, jnp.asarray(index), X[0])
    assert free.low(BOW) == 0
    assert paid.low(BOW) > 19 * 3


def test_what_has_no_figure_is_listed():
    cost = counted(lambda x: lax.lgamma(x) + x, X)
    assert dict(cost.unknown) == {"lgamma": 1}
    assert cost.vector_cycles == 60
