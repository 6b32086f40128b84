"""Rows of many tables, looked up in one step: one for each were a fifth of a program's steps."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int

from pyscf_ipu.codelets.call import codelet
from pyscf_ipu.numerics.arrays import taken
from pyscf_ipu.numerics.two_words import Pair

Rows = Sequence[tuple[Pair, Int[np.ndarray, " _"]]]
"""Tables of one dtype, and for each the places whose rows are wanted."""


Index = Int[Array, " places"] | Int[np.ndarray, " places"]


def look_up(row: Index, wanted: Sequence[Rows]) -> list[Pair]:
    """For each of `wanted` the rows `table[row[places]]` of its tables, one behind another."""

    words = [[(table[w], places) for table, places in rows] for rows in wanted for w in (0, 1)]

    def portable(*operands: Array) -> list[Array]:
        tables = iter(operands[:-1])
        return [
            jnp.concatenate([taken(next(tables), operands[-1][places]) for _, places in rows])
            for rows in words
        ]

    tables = [table for rows in words for table, _ in rows]
    shapes = [(sum(len(p) for _, p in rows), *rows[0][0].shape[1:]) for rows in words]
    numbers: list[int] = []
    for rows in words:
        numbers.append(len(rows))
        for _, places in rows:
            numbers += [len(places), *places]
    plan = np.array(numbers, np.int32)
    given = codelet("look_up", portable, *tables, row, shape=tuple(shapes), plan=plan)
    return [Pair(*pair) for pair in zip(given[::2], given[1::2], strict=True)]
