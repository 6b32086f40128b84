"""JAX as this package's programs need it, whatever mode the caller has put it into."""

import functools
import gc
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import jax
import numpy as np

from pyscf_ipu.base.errors import UsageError

Out = TypeVar("Out")


@contextmanager
def plain_jax() -> Iterator[None]:
    """Compile and run inside the block as outside of every mode of JAX.

    Inside somebody's `jax.jit`, molecules are numbers and are computed at once; a program that is
    compiled cannot run under `jax.disable_jit`; arrays move to the device and back although
    `jax.transfer_guard` forbids it to the caller's own code.

    Raises:
        UsageError: as `refuse_fork`.
    """
    refuse_fork()
    compiled, free = jax.disable_jit(False), jax.transfer_guard("allow")
    with compiled, free, jax.ensure_compile_time_eval():
        yield


def lowered_plainly(function: Callable, args: tuple) -> jax.stages.Lowered:
    """Trace and lower a function in no mode of JAX but those of float64 and of the device.

    In the block of `plain_jax`, every constant would be computed while the function is traced, by a
    small program of its own: some 200 of them take as long as the function.
    """
    with _uncollected():
        return plainly(lambda: jax.jit(function).lower(*args))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep Python from looking for garbage: of the million objects of a trace nearly all stay."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def plainly(function: Callable[[], Out]) -> Out:
    """Call a function in no mode of JAX but those of float64 and of the device.

    Modes belong to a thread, and so does what is being traced: this takes a thread of its own.
    """
    device = jax.config.jax_default_device  # type: ignore[attr-defined]
    is_wide = jax.dtypes.canonicalize_dtype(np.float64) == np.float64

    def call() -> Out:
        with jax.enable_x64(is_wide), jax.default_device(device):
            return function()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call).result()


def refuse_fork() -> None:
    """Raise UsageError in a child by fork of a process that has computed.

    XLA's threads do not live in the child, which would wait for them for ever.
    """
    if _first_process() != os.getpid():
        raise UsageError(
            "this process was forked from one that has computed already, and XLA's threads do not "
            'survive a fork: start processes with multiprocessing.get_context("spawn"), or call '
            "pyscf_ipu in the children only"
        )


@functools.cache
def _first_process() -> int:
    """The process that computed first; children by fork inherit the answer."""
    return os.getpid()
