"""Hermite data of shell pairs, cut by primitive pairs.

The engine computes all pairs of two groups of shells side by side, one elementwise operation after
another.  On an IPU each would be a compute set behind an exchange, for arrays that fill a few
dozen tiles.  Here a worker computes a primitive pair from the rows of its two primitives, all
groups in one compute set.
"""

from functools import partial
from itertools import islice

import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.integrals.shell_pairs import PairData, shell_pairs_vertex
from pyscf_ipu.integrals.strips import StripData, in_strips
from pyscf_ipu.ipu.engine.algorithms.family_vertex import shell_rows, unpack_rows
from pyscf_ipu.ipu.engine.spread.dealing import dealt
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.layout import KindPair, ShellGroup
from pyscf_ipu.tiles import tile_gather, tile_map
from pyscf_ipu.tiles.array import WORKERS


def spread_pairs(n_tiles: int, atoms: Atoms) -> tuple[StripData, ...]:
    """Compute `strips.pair_strips` on tiles 1 to `n_tiles` - 1."""
    groups = atoms.layout.groups
    members = [m for s in atoms.plan.strips for m in s.pair_class.members]
    total = sum(_primitive_pairs(m, groups) for m in members)
    each = -(-total // (WORKERS * (n_tiles - 1)))  # of a vertex
    by_member, first = [], 0
    for member in members:
        parts = _member(member, atoms, each, first=first, n_tiles=n_tiles)
        by_member.append(parts)
        first += len(parts[0])
    # Sums over primitives come behind all vertices, which so share one compute set.
    data = iter([_joined(m, groups, x) for m, x in zip(members, by_member, strict=True)])
    plan = atoms.plan
    return in_strips(plan, [tuple(islice(data, len(s.pair_class.members))) for s in plan.strips])


def _primitive_pairs(member: KindPair, groups: tuple[ShellGroup, ...]) -> int:
    return len(member.first) * groups[member.a].kind.n_prim * groups[member.b].kind.n_prim


def _member(
    member: KindPair, atoms: Atoms, each: int, first: int, n_tiles: int
) -> tuple[Array, ...]:
    """p, centre in two words, E and kinetic energy of some primitive pairs to a vertex: [V, e]."""
    a, b = atoms.layout.groups[member.a], atoms.layout.groups[member.b]
    deep_a, deep_b = a.kind.n_prim, b.kind.n_prim
    count = _primitive_pairs(member, atoms.layout.groups)
    number = np.minimum(np.arange(-(-count // each) * each), count - 1).reshape(-1, each)
    pair, primitive = np.divmod(number, deep_a * deep_b)
    one = member.first[pair] * deep_a + primitive // deep_b
    two = member.second[pair] * deep_b + primitive % deep_b
    tiles = dealt(range(1, n_tiles), len(number), first)
    arrays = tile_map(
        partial(_vertex, a, b),
        tile_gather(shell_rows(atoms.shells[member.a], deep_a), one, tiles),
        tile_gather(shell_rows(atoms.shells[member.b], deep_b), two, tiles),
        name=f"primitive_pairs_{_letters(a)}_{_letters(b)}",
        together=True,
    )
    return tuple(x.array for x in arrays)


def _letters(group: ShellGroup) -> str:
    return "".join("spdf"[l] for l in group.kind.ls)


def _vertex(a: ShellGroup, b: ShellGroup, one: Array, two: Array) -> tuple[Array, ...]:
    """Vertex: rows of primitives [e, width] of both sides."""
    of_a, of_b = unpack_rows(a, a.kind.n_prim, one), unpack_rows(b, b.kind.n_prim, two)
    data = shell_pairs_vertex(a, b, of_a, b=of_b)
    return data.p, *data.centre, data.hermite, data.kinetic


def _joined(member: KindPair, groups: tuple[ShellGroup, ...], parts: tuple[Array, ...]) -> PairData:
    """The primitive pairs of each shell pair side by side again, and their kinetic energy added."""
    n, count = len(member.first), _primitive_pairs(member, groups)
    # Shapes behind the axes of vertices, primitive pairs and, but for the last, one primitive.
    rests = (*(x.shape[3:] for x in parts[:-1]), parts[-1].shape[2:])
    p, hi, lo, hermite, kinetic = (
        x.reshape(-1, *x.shape[2:])[:count].reshape(n, count // n, *rest)
        for x, rest in zip(parts, rests, strict=True)
    )
    return PairData(p, Pair(hi, lo), hermite, kinetic=jnp.sum(kinetic, axis=1))
