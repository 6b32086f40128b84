"""The electron repulsion as an IPU computes it: integrals once, G d in every SCF cycle.

`family_supermatrix` and `family_repulsion` replace the two functions of
`pyscf_ipu.integrals.supermatrix`: the same G, in blocks by quartet families instead of by rows.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.ipu.engine.algorithms.families import FamilyClass, FamilyPlan
from pyscf_ipu.ipu.engine.algorithms.family_cost import piece_bytes
from pyscf_ipu.ipu.engine.algorithms.family_vertex import (
    family_eri_vertex,
    family_product_vertex,
    shell_rows,
)
from pyscf_ipu.ipu.pricing.streaming import streaming_load, streaming_store
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.atoms import Atoms, Shells
from pyscf_ipu.tiles import TileShardedArray, tile_gather, tile_map, tile_put_sharded, tile_total

CACHE_BYTES = 1 << 20  # on a CPU, intermediates of the vertices that are computed side by side


def family_supermatrix(
    plan: FamilyPlan, atoms: Atoms, exchange: Interaction
) -> tuple[TileShardedArray, ...]:
    """The blocks of G of every family class: [V, m, 3, products] in Hartree, on `tiles`.

    G[ij,kl] = (ij|kl) - x/4 [(ik|jl) + (il|jk)] with the fraction x of exact exchange; blocks
    ab-cd, ac-bd, ad-bc of each family, times `FamilyClass.weight`; in streaming memory, if the
    plan has them there.
    """
    blocks: list[TileShardedArray] = []
    with jax.named_scope("eri"):
        for turn, (part, stored) in enumerate(plan.by_turns()):
            shells = atoms.shells
            if turn:  # behind what the turns before have done
                flat, tree = jax.tree.flatten((shells, blocks))
                shells, blocks = jax.tree.unflatten(tree, jax.lax.optimization_barrier(flat))
            made = [_class_blocks(plan, c, shells, exchange=exchange) for c in plan.classes[part]]
            blocks += [streaming_store(x) for x in made] if stored else made
    return tuple(blocks)


def _class_blocks(
    plan: FamilyPlan, c: FamilyClass, shells: tuple[Shells, ...], exchange: Interaction
) -> TileShardedArray:
    a, b, g, d = (plan.layout.groups[i] for i in c.groups)
    rows = [
        tile_gather(shell_rows(shells[group], slices), c.piece_rows(position), c.piece_tiles)
        for position, (group, slices) in enumerate(zip(c.groups, c.slices, strict=True))
    ]
    weight = jnp.asarray(np.repeat(c.weight, c.pieces, axis=0), rows[0].dtype)
    vertex = partial(family_eri_vertex, (a, b, g, d), c.slices, exchange)
    scratch = piece_bytes(plan.kinds(c), c.slices) * c.shells.shape[1]
    pieces = tile_map(
        vertex,
        *rows,
        tile_put_sharded(weight, c.piece_tiles),
        name=f"family_eri_{_letters(plan, c)}",
        together=max(1, CACHE_BYTES // scratch),
    )
    return pieces if c.pieces == 1 else _sum_pieces(c, pieces)


def _letters(plan: FamilyPlan, c: FamilyClass) -> str:
    return "_".join("".join("spdf"[l] for l in kind.ls) for kind in plan.kinds(c))


def _sum_pieces(c: FamilyClass, pieces: TileShardedArray) -> TileShardedArray:
    """The pieces of every family, brought to one tile and added: once per molecule."""
    first = np.arange(len(c.tiles), dtype=np.int32) * c.pieces
    parts = [tile_gather(pieces, first + s, c.tiles) for s in range(c.pieces)]
    return tile_map(_added, *parts, name="family_sum", together=True)


def _added(first: Array, *rest: Array) -> Array:
    return sum(rest, first)


def family_repulsion(
    plan: FamilyPlan, g: tuple[TileShardedArray, ...], d: Array
) -> tuple[Array, Pair]:
    """G d [P] and the energy 1/2 d G d, from `family_supermatrix` and the packed density [P].

    Off-diagonal elements of d count twice, as in `supermatrix.repulsion`.  The energy is added in
    twice the working precision.

    Raises:
        ValueError: d is not of the plan's shape.
    """
    n_pairs = plan.layout.shape.n_pairs
    if d.shape != (n_pairs,):
        raise ValueError(
            f"a density of shape {d.shape} for a plan of {n_pairs} AO pairs: give the packed "
            f"density ({n_pairs},) of the same molecular shape (supermatrix.pack_density)"
        )
    with jax.named_scope("repulsion"):
        # One zero behind the last pair, for the places without an AO pair.
        padded = jnp.concatenate([d, jnp.zeros(1, d.dtype)])
        out, energies = jnp.zeros_like(d), []
        for part, stored in plan.by_turns():
            classes, blocks = plan.classes[part], g[part]
            if stored:
                # Behind the turn before: otherwise the memory of all turns is there at once.
                blocks, out = jax.lax.optimization_barrier((blocks, out))
                blocks = streaming_load(blocks)
            computed = [
                _product(plan, c, x, padded=padded) for c, x in zip(classes, blocks, strict=True)
            ]
            values = jnp.concatenate([y.array.ravel() for y, _ in computed])
            places = np.concatenate([c.element.ravel() for c in classes])
            out = out.at[places].add(values, mode="drop")
            energies += [e.array for _, e in computed]
        hi, lo = jnp.concatenate(energies).T
        return out, tile_total(Pair(hi, lo))


def _product(
    plan: FamilyPlan, c: FamilyClass, blocks: TileShardedArray, padded: Array
) -> tuple[TileShardedArray, TileShardedArray]:
    density = tile_gather(padded, c.element, c.tiles)
    vertex = partial(family_product_vertex, plan.products(c))
    return tile_map(vertex, blocks, density, name="family_product", together=True)
