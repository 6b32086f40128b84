"""One solver per level of theory in a process, so that a second call compiles nothing."""

import functools

from pyscf_ipu.settings import Settings
from pyscf_ipu.solver.solver import Solver

MOST = 8
"""Levels of theory whose solvers are kept: the last ones that were asked for."""


@functools.lru_cache(maxsize=MOST)
def shared_solver(settings: Settings) -> Solver:
    """The solver of these settings, with all the programs it has.

    Raises:
        ValueError: a setting cannot be used.
    """
    return Solver(settings)


def clear() -> None:
    """Let go of the shared solvers: their programs (2 to 20 MB each) are freed.

    A later call makes them ready again, from disk where they are kept there.
    """
    shared_solver.cache_clear()
