"""The arrays of an equation, and whether an IPU can compute with them."""

from typing import cast

import numpy as np
from jax.core import ShapedArray
from jax.extend.core import JaxprEqn, Literal, Var

from pyscf_ipu.errors import Float64OnIpuError


def aval(x: Var | Literal) -> ShapedArray:
    """Shape and dtype of an operand or a result, which is an array."""
    return cast(ShapedArray, x.aval)


def size(x: Var | Literal) -> int:
    """Number of elements of an operand or a result."""
    return aval(x).size


def refuse_float64(eqn: JaxprEqn) -> None:
    """Raises Float64OnIpuError, naming the operation, if an equation reads or makes float64."""
    for v in (*eqn.invars, *eqn.outvars):
        dtype = getattr(v.aval, "dtype", None)
        if dtype in (np.float64, np.complex128):
            raise Float64OnIpuError(
                f"{eqn.primitive.name} computes in {dtype}, and an IPU has no float64: trace the "
                f"program with float32 inputs and constants, outside jax.enable_x64 ({eqn})"
            )
