"""Batch drivers: how one compiled call runs many molecules, and what it is compiled with."""

from functools import partial
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import PyTree

from pyscf_ipu.kohn_sham.program import Driver, Program, State
from pyscf_ipu.numerics.arrays import Count
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.conformer import empty_batch
from pyscf_ipu.shapes.core import numerics_of
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.shapes.tables import ClassTable


def sequential(program: Program) -> Driver:
    """A batch driver for CPUs: molecules one after another, only the first `count` of them.

    One supermatrix at a time stays in cache, a converged molecule costs nothing more, and one
    compiled program serves every batch size.
    """

    def run(tables: tuple[ClassTable, ...], rows: PyTree, count: Count) -> PyTree:
        @partial(jax.jit, inline=True)  # traced once, for the shapes and for the loop
        def one(index: Count) -> PyTree:
            row = jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, index, 0, False), rows)
            return program(tables, row)

        batch = jax.tree.leaves(rows)[0].shape[0]
        empty = jax.tree.map(
            lambda s: jnp.zeros((batch, *s.shape), s.dtype),
            jax.eval_shape(one, jax.ShapeDtypeStruct((), jnp.int32)),
        )

        def step(index: Count, out: PyTree) -> PyTree:
            put = partial(lax.dynamic_update_index_in_dim, index=index, axis=0)
            return jax.tree.map(put, out, one(index))

        return lax.fori_loop(0, count, step, empty)

    return run


def side_by_side(program: Program) -> Driver:
    """A batch driver for GPUs: all molecules at once; those beyond `count` are computed in vain."""

    def run(tables: tuple[ClassTable, ...], rows: PyTree, count: Count) -> PyTree:
        del count
        return jax.vmap(lambda row: program(tables, row))(rows)

    return run


def empty_states(shape: Shape, settings: Settings, size: int, open_shell: bool = False) -> State:
    """A batch of `size`, to compile with."""
    dtype = numerics_of(shape, settings).result_dtype
    of_levels = (size, 2, shape.n_ao) if open_shell else (size, shape.n_ao)
    levels = cast(Array, np.zeros(of_levels, dtype))
    matrix = cast(Array, np.zeros((*of_levels, shape.n_ao), dtype))
    return State(
        empty_batch(shape, settings, size, open_shell=open_shell), matrix, matrix, levels=levels
    )
