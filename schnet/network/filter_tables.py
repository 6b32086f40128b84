"""Filters of a network with fixed weights, tabulated over the distance, for predictions.

A filter is a smooth function of one number, so it is computed once on an even grid of distances and
interpolated: four rows are read in place of two matrix products. Between knots the cubic through
the four nearest ones is used. Its error falls with the fourth power of the spacing over the width
of the Gaussians, and is below the rounding of float32 for this spacing.

Shape legend: T knots, E pairs, F filters.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from schnet.network.model import SchNet, pair_distances
from schnet.network.pack import Pack

PER_GAUSSIAN = 32
"""Knots per width of a Gaussian, whose fourth derivative is 3 at most: 3 * 9/384 / 32^4 = 7e-8."""


class FilterTables(eqx.Module):
    """Filters of a network at evenly spaced distances, beginning one knot below zero."""

    values: list[Float[Array, "T F"]]
    """Of each interaction block."""
    spacing_bohr: float = eqx.field(static=True)

    def __call__(self, distance_bohr: Float[Array, " E"]) -> list[Float[Array, "E F"]]:
        """Interpolate at distances from 0 to the cutoff."""
        place = distance_bohr / jnp.asarray(self.spacing_bohr, distance_bohr.dtype)
        knot = jnp.floor(place)
        weights = lagrange(place - knot)
        first = knot.astype(jnp.int32)
        return [
            sum((w[:, None] * table[first + k] for k, w in enumerate(weights)), start=jnp.zeros(()))
            for table in self.values
        ]


@eqx.filter_jit
def tabulate(model: SchNet) -> FilterTables:
    """The tables of a network."""
    spacing = model.cutoff_bohr / ((model.n_gaussians - 1) * PER_GAUSSIAN)
    knots = (model.n_gaussians - 1) * PER_GAUSSIAN + 4
    distances = jnp.arange(-1, knots - 1, dtype=jnp.float32) * jnp.float32(spacing)
    return FilterTables(model.filters(distances), spacing)


def lagrange(t: Float[Array, " E"]) -> tuple[Float[Array, " E"], ...]:
    """Weights of the knots at -1, 0, 1 and 2 for t between 0 and 1."""
    return (
        t * (t - 1.0) * (t - 2.0) * (-1.0 / 6.0),
        (t + 1.0) * (t - 1.0) * (t - 2.0) * 0.5,
        (t + 1.0) * t * (t - 2.0) * (-0.5),
        (t + 1.0) * t * (t - 1.0) * (1.0 / 6.0),
    )


def predict(model: SchNet, tables: FilterTables, pack: Pack) -> Float[Array, " M"]:
    """The network's output for a pack."""
    # Two programs: both directions of a pair read its filters, and in one program XLA interpolates
    # them twice on CPUs, once inside either sum.
    return _with_filters(model, _look_up(tables, pack), pack)


@eqx.filter_jit
def _look_up(tables: FilterTables, pack: Pack) -> list[Float[Array, "E F"]]:
    return tables(pair_distances(pack))


@eqx.filter_jit
def _with_filters(
    model: SchNet, filters: list[Float[Array, "E F"]], pack: Pack
) -> Float[Array, " M"]:
    return model.with_filters(filters, pack)
