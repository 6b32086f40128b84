"""How a kernel starts: on a GPU compiled by Triton, on a CPU step by step, for tests."""

from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from jax.typing import DTypeLike

from pyscf_ipu.base.host.backend import backend
from pyscf_ipu.machines import pallas as pl

Ref = Any
"""An array of a kernel in the GPU's memory; JAX has no public name for its type."""


def interpreted() -> bool:
    """Whether kernels run as plain JAX here."""
    return backend() == "cpu"


def launch(
    kernel: Callable[..., None],
    name: str,
    programs: tuple[int, ...],
    shape: tuple[int, ...],
    dtype: DTypeLike,
    warps: int,
) -> Callable[..., Array]:
    """A function of arrays that runs a kernel.

    Args:
        kernel: gets the arrays and its result as references.
        name: in profiles.
        programs: how many of it run, along up to three axes.
        shape: of the result.
        dtype: of the result.
        warps: of each program.
    """
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(shape, dtype),
        grid=programs,
        compiler_params=pl.triton.CompilerParams(num_warps=warps, num_stages=1),
        name=name,
        interpret=interpreted(),
    )
