"""The arrays of an equation, and whether an IPU can compute with them."""

from collections.abc import Callable
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var

from pyscf_ipu.base.errors import BFloat16OnIpuError, DtypeOnIpuError, Float64OnIpuError

COMPUTED = frozenset("bool float16 float32 int32 uint32".split())
"""Dtypes that PopLibs's operations compute in (popops, elemwiseBinaryCodelets.cpp)."""
STORED = frozenset("int8 uint8 int16 uint16 int64 uint64".split())
"""Dtypes that Poplar stores, moves and converts."""

_ERRORS = {"float64": Float64OnIpuError, "bfloat16": BFloat16OnIpuError}
_REMEDIES = {
    "bfloat16": "use float16 with loss scaling (schnet train --precision float16), or float32",
    "complex": "compute with real and imaginary part in float32",
    "64": "trace the program with 32-bit inputs and constants, outside jax.enable_x64",
    "int": "use int32",
    "float": "use float16 or float32",
}  # by a part of the dtype's name, the first one that fits


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


def refuse_types(eqn: JaxprEqn, stored: bool = False) -> None:
    """Refuse dtypes that an IPU has no arithmetic for; with `stored`, that it cannot even store.

    Raises:
        DtypeOnIpuError: The equation reads or makes such an array; the error names the operation.
    """
    allowed = COMPUTED | STORED if stored else COMPUTED
    for v in (*eqn.invars, *eqn.outvars):
        dtype = getattr(v.aval, "dtype", np.dtype(bool))
        name = dtype.name
        if name in allowed or not isinstance(dtype, np.dtype) or dtype.names:
            continue  # keys of random numbers, and what has no derivative, are no numbers
        remedy = next(text for part, text in _REMEDIES.items() if part in name)
        raise _ERRORS.get(name, DtypeOnIpuError)(
            f"{eqn.primitive.name} computes in {name}, which an IPU "
            f"{'only stores' if name in STORED else 'does not have'}; it computes in "
            f"{', '.join(sorted(COMPUTED))}: {remedy} ({eqn})"
        )
