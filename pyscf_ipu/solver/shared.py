"""One solver per level of theory in a process, so that a second call compiles nothing."""

import functools
import threading

import jax

from pyscf_ipu.settings import Settings
from pyscf_ipu.solver.platform import Platform
from pyscf_ipu.solver.solver import Solver

_LOCK = threading.Lock()

MOST = 8
"""Levels of theory whose solvers are kept: the last ones that were asked for."""


def shared_solver(settings: Settings, machine: Platform | None = None) -> Solver:
    """The solver of these settings on a machine, with all the programs it has.

    Args:
        settings: the level of theory.
        machine: computes; default: JAX's default device.

    Raises:
        UsageError: a setting cannot be used.
    """
    with _LOCK:  # a cached function may run twice if two threads call it at once
        return _solver(settings, jax.config.jax_default_device, machine)  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=MOST)
def _solver(settings: Settings, device: object, machine: Platform | None) -> Solver:
    computed = settings.without_dispersion()
    if computed == settings:
        return Solver(settings, machine)
    return _solver(computed, device, machine).with_dispersion(settings)


def clear() -> None:
    """Let go of the shared solvers: their programs (2 to 20 MB each) are freed.

    A later call makes them ready again, from disk where they are kept there.
    """
    _solver.cache_clear()
