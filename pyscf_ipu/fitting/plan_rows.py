"""Three-index integrals times columns of a density, and weights of integrals from such columns.

Both work on the rows of the tile plan, whose functions lie side by side.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from pyscf_ipu.codelets import codelet
from pyscf_ipu.fitting.three_index import FloatRF
from pyscf_ipu.numerics.arrays import Count

FloatNC = Float[Array, "N C"]
FloatNCF = Float[Array, "N C F"]
"""AOs, columns of a density, auxiliary functions."""


def times_columns(integrals: FloatRF, rows: np.ndarray, c: FloatNC, used: Count) -> FloatNCF:
    """(a i|P) = sum_b (a b|P) C_bi.

    Args:
        integrals: over the rows of the plan.
        rows: [N, N], of every pair of AOs.
        c: the columns; those from `used` on are zero.
        used: how many there are.
    """

    def portable(integrals: FloatRF, rows: Array, c: FloatNC, used: Count) -> FloatNCF:
        del used
        return lax.map(lambda row: jnp.matmul(c.T, integrals[row], precision="highest"), rows)

    shape = (*c.shape, integrals.shape[1])
    return codelet(
        "fitting_columns", portable, integrals, rows.astype(np.int32), c, used, shape=shape
    )


def with_columns(
    weights: FloatRF, rows: np.ndarray, c: FloatNC, used: Count, w: FloatNCF
) -> FloatRF:
    """Weights plus sum_i C_ai w_biP for both orders of a and b; arguments as `times_columns`.

    The sum over all columns, some in each call, does not depend on that order.
    """

    def portable(weights: FloatRF, rows: Array, c: FloatNC, used: Count, w: FloatNCF) -> FloatRF:
        del used

        def add(total: FloatRF, one: tuple[Array, Array]) -> tuple[FloatRF, None]:
            row, of = one
            return total.at[row].add(jnp.tensordot(w, of, ((1,), (0,)), precision="highest")), None

        return lax.scan(add, weights, (rows, c))[0]

    rows = rows.astype(np.int32)
    return codelet("fitting_weights", portable, weights, rows, c, used, w, shape=weights.shape)
