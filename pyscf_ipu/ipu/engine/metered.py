"""Molecules one after another on a chip: each result with the price of its own run.

A program's cycles are a sum over its loops and branches: what one turn takes, times the turns.  The
cycles of a turn are known when the program is traced, and the compiled program counts its turns.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr
from jaxtyping import PyTree

from pyscf_ipu.base.errors import NoSuchTile, TileMemoryError, TooLarge, UsageError
from pyscf_ipu.base.host.modes import plainly
from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.profile.data import NOTHING
from pyscf_ipu.ipu.simulate import TurnPrices, turn_prices
from pyscf_ipu.ipu.vertices.trip_counts import Counts, Values, with_counts
from pyscf_ipu.kohn_sham.batch import sequential
from pyscf_ipu.kohn_sham.program import Driver, Program
from pyscf_ipu.numerics.arrays import Count
from pyscf_ipu.numerics.two_words import Pair, add, compensated_sum, split, two_product
from pyscf_ipu.shapes.tables import ClassTable


def metered(target: Target, program: Program) -> Driver:
    """A batch driver for one IPU of a chip, which computes one molecule after another.

    The results have `figures`: `ipu_cycles_low` and `ipu_cycles_high` of the molecule's own run,
    and `ipu_fullest_tile_bytes`.  Tables of elements stay on the chip, as in
    `pyscf_ipu.ipu.engine.command.price_rks`.

    Raises:
        TooLarge: (when it is traced) the program needs more memory than a tile has.
        UsageError: (likewise) it has an operation without a price.
    """

    @jax.enable_x64(False)  # also where the caller has asked for float64
    def run(tables: tuple[ClassTable, ...], rows: PyTree, count: Count) -> PyTree:
        like = jax.eval_shape(lambda t, r: (t, jax.tree.map(lambda x: x[0], r)), tables, rows)
        closed, out = jax.make_jaxpr(program, return_shape=True)(*like)
        prices = plainly(lambda: _prices(closed, target))
        as_solution = partial(jax.tree.unflatten, jax.tree.structure(out))
        return sequential(_with_figures(closed, as_solution, prices))(tables, rows, count)

    return run


def _prices(closed: ClosedJaxpr, target: Target) -> TurnPrices:
    """Raise TooLarge if the program does not fit, UsageError if a part of it has no price."""
    try:
        prices = turn_prices(closed, target)
        prices.memory.check()
    except (TileMemoryError, NoSuchTile) as error:
        what, _, _ = str(error).rpartition(": ")
        raise TooLarge(
            f"too large for a simulated {target.name}: {what}; use a smaller molecule or basis, or "
            "machine='cpu'"
        ) from error
    if prices.unknown:
        raise UsageError(
            f"no price on a simulated IPU is known for {', '.join(sorted(prices.unknown))}, which "
            "this level needs: use another level, or machine='cpu'"
        )
    return prices


def _with_figures(
    closed: ClosedJaxpr, as_solution: Callable[[Values], PyTree], prices: TurnPrices
) -> Program:
    """The program of one molecule, whose solution has its price."""
    counted = with_counts(closed, prices.measures)

    def one(*args: PyTree) -> PyTree:
        values, counts = counted(*jax.tree.leaves(args))
        return as_solution(values)._replace(figures=_figures(counts, prices))

    return one


def _figures(counts: Counts, prices: TurnPrices) -> Mapping[str, Pair]:
    """The price of a run of these turns, in two words: float32 ends at 1.7e7 whole cycles."""
    once = prices.cycles.get(None, NOTHING)
    each = [(counts[site], x) for site, x in prices.cycles.items() if site is not None]
    turns = [n.astype(jnp.float32) for n, _ in each]
    measured, figures = [counts[site] for site in prices.measured], dict[str, Pair]()
    for k, end in enumerate(("low", "high")):
        weights = [getattr(x, end) for _, x in each] + [1.0] * len(measured)
        values = turns + [x[k] for x in measured]
        figures[f"ipu_cycles_{end}"] = _sum(getattr(once, end), values, weights)
    return figures | {"ipu_fullest_tile_bytes": _sum(float(prices.memory.max_tile_bytes), [], [])}


def _sum(constant: float, turns: Sequence[Array], each: Sequence[float]) -> Pair:
    """constant + sum of turns * each."""
    whole = split(np.asarray(constant), np.float32)
    whole = Pair(jnp.asarray(whole.hi), jnp.asarray(whole.lo))
    if not turns:
        return whole
    n, weights = jnp.stack(turns), split(np.asarray(each), np.float32)
    product = two_product(n, jnp.asarray(weights.hi))
    return add(whole, compensated_sum(Pair(product.hi, product.lo + n * weights.lo)))
