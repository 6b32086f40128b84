"""Rows of many tables, looked up in one step: one for each were a fifth of a program's steps."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int

from pyscf_ipu.codelets.call import codelet
from pyscf_ipu.numerics.arrays import HostArray, taken

Rows = Sequence[tuple[HostArray, Int[np.ndarray, " _"]]]
"""Tables of one dtype, and for each the places whose rows are wanted."""


Index = Int[Array, " places"] | Int[np.ndarray, " places"]


def look_up(row: Index, wanted: Sequence[Rows]) -> list[Array]:
    """For each of `wanted` the rows `table[row[places]]` of its tables, one behind another."""

    def portable(*operands: Array) -> list[Array]:
        tables = iter(operands[:-1])
        return [
            jnp.concatenate([taken(next(tables), operands[-1][places]) for _, places in rows])
            for rows in wanted
        ]

    tables = [table for rows in wanted for table, _ in rows]
    shapes = [(sum(len(p) for _, p in rows), *rows[0][0].shape[1:]) for rows in wanted]
    numbers: list[int] = []
    for rows in wanted:
        numbers.append(len(rows))
        for _, places in rows:
            numbers += [len(places), *places]
    plan = np.array(numbers, np.int32)
    return list(codelet("look_up", portable, *tables, row, shape=tuple(shapes), plan=plan))
