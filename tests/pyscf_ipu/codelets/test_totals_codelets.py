"""The native sums in twice the working precision: exact sums, rows, and the portable forms."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import NATIVE, OPTIMISED

from pyscf_ipu.numerics.two_words import Pair, to_float64, two_product
from pyscf_ipu.tiles import exact_product, tile_dot, tile_total, vertex_total

pytestmark = NATIVE

COUNTS = [1, 2, 7, 15, 16, 17, 33, 100, 1088]


def cancelling(shape, dtype):
    """Two words whose sum is far smaller than they are."""
    rng = np.random.default_rng(0)
    high = rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 5, shape)
    high[..., 1::2] = -high[..., ::2][..., : high[..., 1::2].shape[-1]]
    low = 0.1 * np.finfo(dtype).eps * high * rng.normal(size=shape)
    return high.astype(dtype), low.astype(dtype)


def exact(*columns):
    numbers = [[Fraction(float(x)) for x in column] for column in columns]
    return float(sum(np.prod(terms) for terms in zip(*numbers, strict=True)))


def portable_of(function, *args):
    """The portable form of the codelet that a function calls last."""
    closed = jax.make_jaxpr(function)(*args)
    return next(e for e in closed.eqns[::-1] if e.primitive.name == "codelet").params["portable"]


@pytest.mark.parametrize(("dtype", "precision"), [("float32", 1e-12), ("float64", 1e-29)])
@pytest.mark.parametrize("count", COUNTS)
def test_sums_are_exact_to_two_words(count, dtype, precision):
    with jax.enable_x64(dtype == "float64"):
        high, low = cancelling((count,), dtype)
        for total in (tile_total, vertex_total):
            pair = jax.jit(total)(Pair(jnp.asarray(high), jnp.asarray(low)))
            assert pair.dtype == dtype
            rest = Fraction(float(pair.hi)) + Fraction(float(pair.lo))
            wanted = sum(map(Fraction, [*high.tolist(), *low.tolist()]))
            assert abs(rest - wanted) <= precision * float(np.abs(high).sum())


@pytest.mark.parametrize("count", COUNTS)
def test_products_are_exact_to_two_words(count):
    (high, low), (a, _) = cancelling((count,), "float32"), cancelling((count,), "float32")
    one = float(to_float64(jax.jit(tile_dot)(jnp.asarray(a), jnp.asarray(high))))
    both = Pair(jnp.asarray(high), jnp.asarray(low))
    two = float(to_float64(jax.jit(tile_dot)(jnp.asarray(a), both)))
    size = float(np.abs(a.astype(float) * high).sum())
    assert abs(one - exact(a, high)) <= 1e-12 * size
    assert abs(two - exact(a, high) - exact(a, low)) <= 1e-12 * size


@pytest.mark.parametrize("count", [1, 31, 1088])
def test_a_batch_is_rows_of_one_native_call(count):
    """And its rows are, bit for bit, what single calls give."""
    pairs = Pair(*map(jnp.asarray, cancelling((5, count), "float32")))
    text = jax.jit(jax.vmap(vertex_total)).lower(pairs).as_text()
    assert text.count("compensated_sum") == 1
    assert "tensor<5x" in text.split("compensated_sum")[1]
    found = jax.jit(jax.vmap(vertex_total))(pairs)
    for row in range(5):
        alone = jax.jit(vertex_total)(pairs.at(row))
        assert found.hi[row] == alone.hi
        assert found.lo[row] == alone.lo


def test_a_batch_where_one_operand_is_shared():
    rng = np.random.default_rng(1)
    a = jnp.asarray(rng.normal(size=(3, 40)), "float32")
    b = jnp.asarray(rng.normal(size=40), "float32")
    found = jax.jit(jax.vmap(tile_dot, in_axes=(0, None)))(a, b)
    for row in range(3):
        assert abs(to_float64(found.at(row)) - exact(a[row], b)) <= 1e-12 * np.abs(a[row] * b).sum()


@pytest.mark.parametrize("count", [1, 40, 1088])
def test_portable_forms_agree(count):
    high, low = map(jnp.asarray, cancelling((count,), "float32"))
    scale = float(np.abs(high).sum())
    for total in (tile_total, vertex_total):
        portable = portable_of(total, Pair(high, low))
        assert (
            abs(
                to_float64(Pair(*jax.jit(portable, compiler_options=OPTIMISED)(high, low)))
                - to_float64(jax.jit(total)(Pair(high, low)))
            )
            <= 1e-12 * scale
        )
    product = two_product(high, high)
    portable = portable_of(tile_dot, high, Pair(high, low))
    found = to_float64(Pair(*jax.jit(portable, compiler_options=OPTIMISED)(high, high, low)))
    wanted = to_float64(jax.jit(tile_dot)(high, Pair(high, low)))
    assert abs(found - wanted) <= 1e-12 * float(np.abs(product.hi).sum())


@pytest.mark.parametrize(("dtype", "precision"), [("float32", 1e-13), ("float64", 1e-29)])
def test_a_matrix_product_is_exact_to_two_words(dtype, precision):
    """The native one, and the portable one (whose last bits are those of two floats)."""
    with jax.enable_x64(dtype == "float64"):
        a = Pair(*map(jnp.asarray, cancelling((3, 8), dtype)))
        b = Pair(*map(jnp.asarray, cancelling((8, 5), dtype)))
        portable = jax.jit(portable_of(exact_product, a, b), compiler_options=OPTIMISED)
        forms = (jax.jit(exact_product)(a, b), precision), (Pair(*portable(*a, *b)), 10 * precision)
    left, right = (
        [
            [Fraction(float(h)) + Fraction(float(l)) for h, l in zip(*rows, strict=True)]
            for rows in zip(*map(np.asarray, x), strict=True)
        ]
        for x in (a, b)
    )
    for found, bound in forms:
        for i in range(3):
            for j in range(5):
                terms = [left[i][k] * right[k][j] for k in range(8)]
                got = Fraction(float(found.hi[i, j])) + Fraction(float(found.lo[i, j]))
                assert abs(got - sum(terms)) <= bound * float(sum(map(abs, terms)))
