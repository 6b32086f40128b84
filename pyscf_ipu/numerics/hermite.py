"""Hermite Coulomb integrals R_tuv, the one intermediate that all Coulomb integrals share.

R_tuv(alpha, r) = (d/dx)^t (d/dy)^u (d/dz)^v F_0(alpha r^2), with the recursion
R^n_{t+1,u,v} = x R^{n+1}_{tuv} + t R^{n+1}_{t-1,u,v} and R^n_000 = (-2 alpha)^n F_n(alpha r^2)
(Helgaker, Jorgensen, Olsen, eq. 9.9.18-20; McMurchie & Davidson, J. Comput. Phys. 26, 218
(1978), doi:10.1016/0021-9991(78)90092-X).

Rows are ordered by degree t+u+v, then t descending, then u descending.  In that order the x
recursion of degree d is one contiguous product with the whole of degree d-1, and y and z take its
tail: a level is a few long vector operations, and no gather is needed.
"""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pyscf_ipu.numerics.arrays import Count, HLanes, Lanes
from pyscf_ipu.numerics.boys import PLAIN, Arithmetic, boys
from pyscf_ipu.numerics.interaction import COULOMB, Interaction

SIDE_CONSTANT = math.sqrt(2.0) * math.pi**1.25
"""Over p, the part of a bra or a ket in 2 pi^(5/2) / (p q sqrt(p + q)), the constant of an electron
repulsion integral."""


@functools.cache
def hermite_powers(order: int) -> tuple[tuple[int, int, int], ...]:
    """(t, u, v) of every row up to total degree `order`."""
    return tuple(
        (t, u, n - t - u)
        for n in range(order + 1)
        for t in range(n, -1, -1)
        for u in range(n - t, -1, -1)
    )


def n_hermite(order: int) -> int:
    return (order + 1) * (order + 2) * (order + 3) // 6


@functools.cache
def product_index(bra: int, ket: int) -> np.ndarray:
    """Row of R for the sum of a bra and a ket Hermite: [n_hermite(bra), n_hermite(ket)]."""
    row = {h: i for i, h in enumerate(hermite_powers(bra + ket))}
    return np.array(
        [
            [row[(a[0] + b[0], a[1] + b[1], a[2] + b[2])] for b in hermite_powers(ket)]
            for a in hermite_powers(bra)
        ],
        np.int32,
    )


@functools.cache
def hermite_sign(order: int) -> np.ndarray:
    """(-1)^(t+u+v) of every row: the sign a Hermite takes on the ket side."""
    return np.array([(-1.0) ** sum(h) for h in hermite_powers(order)])


def coulomb_seeds(
    order: int,
    alpha: Lanes,
    prefactor: Lanes,
    square: Lanes,
    of: Interaction = COULOMB,
    arithmetic: Arithmetic = PLAIN,
) -> list[Lanes]:
    """prefactor * R^n_000 for n = 0..order, from which the recursion begins.

    Of the long range of 1/r they are those of 1/r at the exponent alpha s, times sqrt(s), with
    s = omega^2 / (omega^2 + alpha) (Gill and Adamson 1996, see `Interaction`).

    Args:
        order: the highest.
        alpha: exponents in 1/Bohr^2.
        prefactor: of everything.
        square: squared distances in Bohr^2.
        of: the interaction.
        arithmetic: of the machine.
    """

    def plain(alpha: Lanes, scaled: Lanes) -> list[Lanes]:
        f = boys(order, alpha * square, arithmetic)
        seeds = []
        for value in f:
            seeds.append(value * scaled)
            scaled = scaled * (-2.0 * alpha)
        return seeds

    if of == COULOMB:
        return plain(alpha, prefactor)
    root = of.omega * arithmetic.inverse_root(of.omega**2 + alpha)
    far = plain(alpha * (root * root), prefactor * (of.long_range * root))
    if of.full == 0.0:
        return far
    near = plain(alpha, prefactor * of.full)
    return [a + b for a, b in zip(near, far, strict=True)]


def hermite_coulomb(
    order: int,
    alpha: Lanes,
    prefactor: Lanes,
    r: list[Lanes],
    of: Interaction = COULOMB,
    arithmetic: Arithmetic = PLAIN,
) -> HLanes:
    """prefactor * R_tuv(alpha, r) for all t+u+v <= order; alpha in 1/Bohr^2, r = [x, y, z] Bohr."""
    x, y, z = r
    seeds = coulomb_seeds(
        order, alpha, prefactor, square=x * x + y * y + z * z, of=of, arithmetic=arithmetic
    )
    if order == 0:
        return seeds[0][None]
    # A loop, not unrolled Python, over the levels whose result is only an intermediate: each
    # level is materialised once, where XLA would otherwise recompute it for every consumer.
    top_down = jnp.stack(seeds[::-1])
    rows = n_hermite(order - 1)
    table = jnp.zeros((rows, *x.shape), x.dtype).at[0].set(top_down[0])

    def level(i: Count, table: Array) -> Array:
        seed = lax.dynamic_index_in_dim(top_down, i, 0, keepdims=False)
        return _raise(order - 1, table, seed, r=r, arithmetic=arithmetic)

    if order > 1:
        table = lax.fori_loop(1, order, level, table)
    return _raise(order, table, top_down[order], r=r, arithmetic=arithmetic)


def _raise(order: int, below: Array, seed: Lanes, r: list[Lanes], arithmetic: Arithmetic) -> HLanes:
    """One level: rows of R^n up to `order` from the rows of R^(n+1) up to order - 1."""
    out = [seed[None]]
    for d in range(1, order + 1):
        start, end = n_hermite(d - 2), n_hermite(d - 1)
        one, two = below[start:end], below[n_hermite(d - 3) if d > 2 else 0 : start]
        out += arithmetic.routine(_degree, d=d)(one=one, two=two, r=r)
    return jnp.concatenate(out)


def _degree(d: int, one: HLanes, two: Array, r: list[Lanes]) -> list[Array]:
    """Rows of degree d, from those of degrees d - 1 and d - 2 one level below."""
    x, y, z = r
    lanes = (1,) * x.ndim
    powers = hermite_powers(d)[n_hermite(d - 1) - len(one) - len(two) : n_hermite(d - 2)]
    t = np.array([h[0] + 1 for h in powers], np.float64)
    u = np.arange(d - 1, 0, -1, dtype=np.float64)
    return [
        _axis(x, one, two, count=t.reshape(-1, *lanes)),
        _axis(y, one[-d:], two[len(two) - (d - 1) :], count=u.reshape(-1, *lanes)),
        _axis(
            z, one[-1:], two[len(two) - 1 :] if d > 1 else two, count=np.full((1, *lanes), d - 1.0)
        ),
    ]


def _axis(r: Lanes, one: HLanes, two: Array, count: np.ndarray) -> HLanes:
    """r * one, plus count * two on the leading rows that have a row two below them."""
    raised = r * one
    if two.shape[0] == 0:
        return raised
    head = raised[: two.shape[0]] + jnp.asarray(count, r.dtype) * two
    return (
        head if raised.shape[0] == two.shape[0] else jnp.concatenate([head, raised[two.shape[0] :]])
    )
