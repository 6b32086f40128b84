"""AO values on blocks of grid points, and which AOs vanish where.

AOs that are negligible on 64 points one after another are left out there.  Points are in an order
in which neighbours follow one another (`atomic_grid`).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pyscf_ipu.codelets import codelet
from pyscf_ipu.codelets.frozen import Constant
from pyscf_ipu.elements.basis import to_functions
from pyscf_ipu.elements.basis_sets import MAX_L
from pyscf_ipu.grid.ao_values import ao_values
from pyscf_ipu.numerics.arrays import FloatDNG, FloatG3, FloatTDNG, FloatTG
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.atoms import Atoms, Shells
from pyscf_ipu.shapes.layout import Layout
from pyscf_ipu.tiles import tile_map, tile_put_sharded

SCREENED_POINTS = 64
NEGLIGIBLE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}
"""Square root of the integral of an AO and its gradient squared over 64 points, atomic units.

Energies of nine heavy atoms change by less than 1e-7 Hartree at 1e-6."""


class AoBlocks(NamedTuple):
    """The AOs on T blocks of points."""

    values: FloatTDNG
    """D = 1 (values), or 4 with d/dx, d/dy, d/dz (1/Bohr)."""
    packed: Packed | None = None
    """Which AOs these are, where they are not all of them in their order."""

    def listed(self) -> Packed:
        """The AOs of each block, packed or not."""
        if self.packed is not None:
            return self.packed
        tiles, _, n, _ = self.values.shape
        every = np.tile(np.arange(n, dtype=np.int32), (tiles, 1))
        return Packed(every, np.full(tiles, n, np.int32))


class Packed(NamedTuple):
    """The AOs that count on a block come first; the values of the others mean nothing."""

    aos: Int[Array, "T N"] | Int[np.ndarray, "T N"]
    """The AO of every row of the values; those that count in their order."""
    count: Int[Array, " T"] | Int[np.ndarray, " T"]


def ao_blocks(
    atoms: Atoms,
    local: Float[Array, "T G 3"],
    owner: Int[np.ndarray, "T G"] | Int[Array, "T G"],
    weights: FloatTG,
    gradient: bool,
    screened: bool = True,
) -> AoBlocks:
    """All AOs on T blocks of points at nuclei[owner] + local (Bohr).

    Args:
        atoms: the molecule.
        local: the points relative to their owners, Bohr.
        owner: atom slot of each point.
        weights: of the points in an integral, Bohr^3.
        gradient: whether D is 4.
        screened: whether values are zero where they are `NEGLIGIBLE`.
    """
    operands, size, attributes = ao_operands(atoms, local, owner, gradient=gradient)
    values = codelet(
        "ao_values",
        partial(_portable, atoms.layout, gradient),
        *operands,
        shape=size,
        **attributes,
    )
    if screened:
        live = not_negligible(values, weights, NEGLIGIBLE[np.dtype(atoms.dtype)])
        everywhere = jnp.repeat(live, SCREENED_POINTS, axis=1).swapaxes(1, 2)[:, None]
        values = jnp.where(everywhere[..., : values.shape[-1]], values, 0.0)
    return AoBlocks(values)


def packed_ao_blocks(
    atoms: Atoms,
    local: Float[Array, "T G 3"],
    owner: Int[np.ndarray, "T G"] | Int[Array, "T G"],
    weights: FloatTG,
    gradient: bool,
) -> AoBlocks:
    """The AOs that are not `NEGLIGIBLE` on blocks of up to 64 points; arguments as in `ao_blocks`.

    Raises:
        ValueError: a block has more points.
    """
    if owner.shape[1] > SCREENED_POINTS:
        raise ValueError(f"{owner.shape[1]} points in a block: pack up to {SCREENED_POINTS}")
    negligible = NEGLIGIBLE[np.dtype(atoms.dtype)]
    operands, size, attributes = ao_operands(atoms, local, owner, gradient=gradient)

    def portable(*operands: Array) -> tuple[Array, ...]:
        *rest, weights = operands
        values = _portable(atoms.layout, gradient, *rest)
        packed = pack(values, not_negligible(values, weights, negligible)[:, 0])
        return packed.values, *map(jnp.asarray, packed.listed())

    tiles, n = size[0], size[2]
    lists = (jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((tiles, n), (tiles,)))
    values, *packed = codelet(
        "packed_ao_values",
        portable,
        *(*operands, weights),
        shape=(size, *lists),
        negligible=negligible,
        **attributes,
    )
    return AoBlocks(values, Packed(*packed))


def pack(values: FloatTDNG, live: Bool[Array, "T N"]) -> AoBlocks:
    """Brings the AOs that count to the front; the others become zero."""
    aos = jnp.argsort(~live, axis=1, stable=True).astype(jnp.int32)
    count = live.sum(1, dtype=jnp.int32)
    kept = jnp.where(live[:, None, :, None], values, 0.0)
    return AoBlocks(jnp.take_along_axis(kept, aos[:, None, :, None], 2), Packed(aos, count))


def not_negligible(ao: FloatTDNG, weights: FloatTG, negligible: float) -> Bool[Array, "T lists N"]:
    """Whether sum_g w_g sum_d ao_d^2 is at least `negligible` squared, on every 64 points."""
    tiles, planes, n, points = ao.shape
    pad = -points % SCREENED_POINTS
    root = jnp.sqrt(jnp.abs(weights)) / negligible
    scaled = jnp.pad(ao * root[:, None, None], ((0, 0),) * 3 + ((0, pad),))
    size = (scaled**2).reshape(tiles, planes, n, -1, SCREENED_POINTS).sum((1, 4))
    return (size >= 1.0).swapaxes(1, 2)


def ao_operands(
    atoms: Atoms,
    local: Float[Array, "T G 3"],
    owner: Int[np.ndarray, "T G"] | Int[Array, "T G"],
    gradient: bool,
) -> tuple[tuple[Array, ...], tuple[int, ...], dict[str, Constant]]:
    """Operands, the size of their values, and attributes of the codelets of AO values."""
    layout = atoms.layout
    exponents = _words([s.exponents for s in atoms.shells])
    coefficients = _words([s.coefficients for s in atoms.shells])
    places = jnp.asarray(owner, np.int32)
    blocks, points = owner.shape
    attributes = {
        "shells": shell_table(layout).ravel(),
        "pure_d": _pure(layout, 2),
        "pure_f": _pure(layout, 3),
    }
    size = blocks, 4 if gradient else 1, layout.shape.n_ao, points
    return (local, places, *atoms.nuclei, exponents, coefficients), size, attributes


def _words(parts: list[Pair]) -> Float[Array, "2 numbers"]:
    """All numbers of some arrays, in two words: rounded to one, they would be a bias that all
    molecules share."""
    return jnp.stack(
        [jnp.concatenate([x.ravel() for x in word]) for word in zip(*parts, strict=True)]
    )


def _portable(layout: Layout, gradient: bool, *operands: Array) -> FloatTDNG:
    """The portable form of the codelet "ao_values"."""
    local, owner, hi, lo, exponents, coefficients = operands
    centres = Pair(hi, lo)
    parts = split_shells(layout, centres, exponents, coefficients=coefficients)
    return ao_blocks_vertex(layout, parts, local, owner=centres.at(owner), gradient=gradient)


def ao_blocks_vertex(
    layout: Layout,
    shells: tuple[Shells, ...],
    local: Float[Array, "T G 3"],
    owner: Pair,
    gradient: bool,
) -> FloatTDNG:
    """One compute set, a vertex per block."""

    def ao_values_vertex(local: FloatG3, hi: FloatG3, lo: FloatG3) -> FloatDNG:
        return ao_values(layout, shells, local, owner=Pair(hi, lo), gradient=gradient)

    tiles = range(local.shape[0])
    args = [tile_put_sharded(x, tiles) for x in (local, owner.hi, owner.lo)]
    return tile_map(ao_values_vertex, *args, name="ao_values", shared=True).array


def _pure(layout: Layout, l: int) -> Float[np.ndarray, " numbers"]:
    """What makes functions of one l from cartesian powers, row by row."""
    cart = any(group.kind.cart for group in layout.groups if group.kind.l_max == l)
    return to_functions(l, cart).ravel()


def shell_table(layout: Layout) -> Int[np.ndarray, "shells 9"]:
    """What the codelet "ao_values" reads of every shell.

    Atom slot, first AO, number of primitives, where its exponents and where its coefficients
    start in the lists of all, number of contractions for l = 0 to 3.  Sorted by atom.
    """
    rows, exponent, coefficient = [], 0, 0
    for group in layout.groups:
        k, parts = group.kind.n_prim, dict(group.kind.parts)
        contractions = [parts.get(l, 0) for l in range(MAX_L + 1)]
        for atom, ao in zip(group.atom, group.ao, strict=True):
            rows.append([atom, ao, k, exponent, coefficient, *contractions])
            exponent += k
            coefficient += k * sum(contractions)
    table = np.array(rows, np.int32)
    return table[np.argsort(table[:, 0], kind="stable")]


def split_shells(
    layout: Layout,
    nuclei: Pair,
    exponents: Float[Array, "2 numbers"],
    coefficients: Float[Array, "2 more"],
) -> tuple[Shells, ...]:
    """The shells of every group from the lists of all exponents and coefficients."""
    out, exponent, coefficient = [], 0, 0
    for group in layout.groups:
        n, k = group.n_shells, group.kind.n_prim
        columns = sum(count for _, count in group.kind.parts)
        a = exponents[:, exponent : exponent + n * k].reshape(2, n, k)
        c = coefficients[:, coefficient : coefficient + n * k * columns].reshape(2, n, k, columns)
        out.append(Shells(Pair(*a), Pair(*c), nuclei.at(group.atom)))
        exponent, coefficient = exponent + n * k, coefficient + n * k * columns
    return tuple(out)
