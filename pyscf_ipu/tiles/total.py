"""Sums over everything, in twice the working precision and in few compute sets.

On a machine of tiles, a tree of two-sums over a whole array takes a step per level, and an exchange
after each.  Here a vertex adds up some twenty terms, another those sums, and so on.
On a CPU each sum is one native codelet, and not a hundred small steps for the compiler.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from pyscf_ipu.codelets import codelet, row_codelet
from pyscf_ipu.numerics.arrays import Floats
from pyscf_ipu.numerics.two_words import Pair, compensated_sum, two_product
from pyscf_ipu.tiles.array import WORKERS, tile_put_sharded
from pyscf_ipu.tiles.map import tile_map

ONE_VERTEX = 32  # terms that one vertex adds up sooner than it would send them
LEVELS = 3  # of equal fan-in: more would cost more in exchanges than they save


def tile_total(terms: Pair) -> Pair:
    """Sum over every element: [...] -> scalar Pair."""
    return _sum(_total, terms)


def vertex_total(terms: Pair) -> Pair:
    """The total inside a vertex, which has all terms."""
    return _sum(lambda hi, lo: compensated_sum(Pair(hi, lo)), terms)


def tile_dot(a: Floats, b: Pair | Floats) -> Pair:
    """sum a b over every element -> scalar Pair; b in one word or two."""
    one_word = not isinstance(b, Pair)
    hi, lo = (b, jnp.zeros_like(b)) if one_word else b
    _must_match(a, hi, lo)

    def portable(a: Floats, hi: Floats, lo: Floats) -> tuple[Floats, Floats]:
        return _dot(a, hi) if one_word else _dot(a, hi, lo)

    words = (x.ravel() for x in (a, hi, lo))
    return Pair(*row_codelet("compensated_dot", portable, *words, shape=((), ())))


def exact_product(a: Pair, b: Pair) -> Pair:
    """A B of matrices in two words; meant for few products, of which the difference to something
    nearly equal is wanted."""

    def portable(*words: Floats) -> Pair:
        left, right = Pair(*words[:2]), Pair(words[2].T, words[3].T)

        def element(row: Pair, column: Pair) -> Pair:
            whole = two_product(row.hi, column.hi)
            rest = row.hi * column.lo + row.lo * column.hi
            return compensated_sum(Pair(whole.hi, whole.lo + rest))

        return lax.map(lambda row: jax.vmap(lambda column: element(row, column))(right), left)

    shape = (a.hi.shape[0], b.hi.shape[1])
    return Pair(*codelet("exact_product", portable, *a, *b, shape=(shape, shape)))


def _sum(portable: Callable[[Floats, Floats], tuple[Floats, Floats]], terms: Pair) -> Pair:
    _must_match(*terms)
    words = (x.ravel() for x in terms)
    return Pair(*row_codelet("compensated_sum", portable, *words, shape=((), ())))


def _must_match(first: Floats, *others: Floats) -> None:
    """Refuse operands that the native codelets, which see addresses only, would misread."""
    kinds = [(x.shape, x.dtype) for x in (first, *others)]
    if len(set(kinds)) > 1:
        raise ValueError(f"terms of shapes and dtypes {kinds}: make them alike before the sum")


def _total(hi: Floats, lo: Floats) -> tuple[Floats, Floats]:
    """The portable form of `tile_total`."""
    return _levels(hi, lo, _fan_in(hi.size))


def _dot(a: Floats, *words: Floats) -> tuple[Floats, Floats]:
    """The portable form of `tile_dot`: products and their sums in the first level."""
    fan_in = _fan_in(a.size)
    hi, lo = _level(_dot_vertex, "dot", fan_in, a, *words)
    return _levels(hi, lo, fan_in)


def _levels(hi: Floats, lo: Floats, fan_in: int) -> tuple[Floats, Floats]:
    """Sums of sums, until one is left."""
    while hi.size > 1:
        hi, lo = _level(_total_vertex, "total", fan_in, hi, lo)
    return hi.reshape(()), lo.reshape(())


def _fan_in(size: int) -> int:
    if size <= ONE_VERTEX:
        return max(1, size)
    return next(n for n in range(2, size) if n**LEVELS >= size)


def _level(
    vertex: Callable[..., Pair], name: str, fan_in: int, *terms: Floats
) -> tuple[Floats, Floats]:
    """Sums of `fan_in` terms each, with zeros behind the last."""
    count = -(-terms[0].size // fan_in)
    pad = count * fan_in - terms[0].size
    tiles = [row // WORKERS for row in range(count)]
    rows = [tile_put_sharded(jnp.pad(x.ravel(), (0, pad)).reshape(count, -1), tiles) for x in terms]
    hi, lo = tile_map(vertex, *rows, name=name, together=True)
    return hi.array, lo.array


def _total_vertex(hi: Floats, lo: Floats) -> Pair:
    return compensated_sum(Pair(hi, lo))


def _dot_vertex(a: Floats, hi: Floats, *lo: Floats) -> Pair:
    product = two_product(a, hi)
    return compensated_sum(Pair(product.hi, sum((a * x for x in lo), product.lo)))
