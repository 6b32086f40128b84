"""The arrays of an equation, and whether an IPU can compute with them."""

from collections.abc import Callable
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var

from pyscf_ipu.base.errors import BFloat16OnIpuError, Float64OnIpuError


def aval(x: Var | Literal) -> ShapedArray:
    """Shape and dtype of an operand or a result, which is an array."""
    return cast(ShapedArray, x.aval)


def traced(fn: Callable[..., object], eqn: JaxprEqn) -> ClosedJaxpr:
    """The program of a function of an equation's operands."""
    rows = (jax.ShapeDtypeStruct(x.shape, x.dtype) for x in map(aval, eqn.invars))
    return jax.make_jaxpr(fn)(*rows)


def size(x: Var | Literal) -> int:
    """Number of elements of an operand or a result."""
    return aval(x).size


def is_half(eqn: JaxprEqn) -> bool:
    """Whether an equation computes in float16: it reads that, and no other floating type."""
    dtypes = {aval(v).dtype for v in eqn.invars or eqn.outvars if hasattr(v.aval, "dtype")}
    floating = {d for d in dtypes if jnp.issubdtype(d, np.floating)}
    return floating == {np.dtype(np.float16)}


def refuse_types(eqn: JaxprEqn) -> None:
    """Refuse number formats that an IPU does not have.

    Raises:
        Float64OnIpuError: The equation reads or makes float64; the error names the operation.
        BFloat16OnIpuError: The same of bfloat16.
    """
    for v in (*eqn.invars, *eqn.outvars):
        dtype = getattr(v.aval, "dtype", None)
        if dtype in (np.float64, np.complex128):
            raise Float64OnIpuError(
                f"{eqn.primitive.name} computes in {dtype}, and an IPU has no float64: trace the "
                f"program with float32 inputs and constants, outside jax.enable_x64 ({eqn})"
            )
        if getattr(dtype, "name", "") == "bfloat16":
            raise BFloat16OnIpuError(
                f"{eqn.primitive.name} computes in bfloat16, which an IPU does not have: use "
                "float16 with loss scaling (schnet train --precision float16), or float32"
            )
