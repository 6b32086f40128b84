"""The engine as the generator sees it: an object made by a named factory.

The factory is named by a string ("module:function") because workers are separate processes that
import it themselves, and because tests and other devices bring their own. It gets the fields of a
`Level` as keywords and returns a solver with `shape`, `n_ao`, `batch_size`, `memory_bytes`,
`compile` and `run`, all as in `pyscf_ipu.solver.Solver`.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .errors import UserError

if TYPE_CHECKING:
    from .presets import Level

DEFAULT = "qm1b.engine:pyscf_ipu_solver"


def pyscf_ipu_solver(**level: Any) -> Any:
    """The project's own engine.

    Raises:
        ValueError: a setting is not offered; the message names what is.
        UserError: there is no folder for compiled programs.
    """
    from pyscf_ipu.cache import enable_disk_cache
    from pyscf_ipu.settings import Settings
    from pyscf_ipu.solver import Solver

    solver = Solver(Settings(**level))
    try:
        enable_disk_cache()
    except OSError as error:
        raise UserError(
            f"compiled programs cannot be kept in {error.filename} ({error.strerror}); "
            "set PYSCF_IPU_CACHE to a folder that can be written."
        ) from None
    return solver


def build(factory: str, level: Level) -> Any:
    """The solver that `factory` makes for a level of theory."""
    module, _, name = factory.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySCF adds advice of its own to an unknown basis
        return getattr(importlib.import_module(module), name)(**vars(level))


def ao_counter(solver: Any) -> Callable[[Iterable[int]], int]:
    """Number of AOs for atomic numbers, from one question to the solver for each element.

    What it gives raises ValueError when the basis lacks an element.
    """
    of_element = functools.cache(lambda number: solver.n_ao([number]))
    return lambda numbers: sum(of_element(int(number)) for number in numbers)


def at_precisions(factory: str, level: Level) -> Callable[[str | None], Any]:
    """The solver of a level of theory (None), and the same in another precision; each made when it
    is first asked for."""

    @functools.cache
    def solver(precision: str | None = None) -> Any:
        return build(factory, level if precision is None else replace(level, precision=precision))

    return solver


def definition(xc: str) -> str:
    """What a functional's name means, with libxc ids."""
    from pyscf_ipu.xc import functional

    return functional(xc).definition
