"""What can be wrong with a program that is priced for an IPU."""

from __future__ import annotations

from typing import Any

import numpy as np


class Float64OnIpuError(TypeError):
    """The program computes in float64, which an IPU does not have."""


class TileMemoryError(MemoryError):
    """The program needs more memory on a tile than there is."""


def refuse_float64(eqn: Any) -> None:
    """Raises Float64OnIpuError, naming the operation, if an equation has to do with float64."""
    for v in (*eqn.invars, *eqn.outvars):
        dtype = getattr(v.aval, "dtype", None)
        if dtype in (np.float64, np.complex128):
            raise Float64OnIpuError(
                f"{eqn.primitive.name} computes in {dtype}, and an IPU has no float64: trace the "
                f"program with float32 inputs and constants, outside jax.enable_x64 ({eqn})"
            )
