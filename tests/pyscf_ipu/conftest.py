"""Solvers shared by the tests: tracing and compiling a program takes seconds."""

from collections.abc import Callable

import pytest

from pyscf_ipu import Settings, Solver


@pytest.fixture(scope="session")
def solver_of() -> Callable[..., Solver]:
    """A Solver for some settings; the same one for the same settings."""
    made: dict[Settings, Solver] = {}

    def find(**changes) -> Solver:
        settings = Settings(**{"grid_level": 0, **changes})
        return made.setdefault(settings, Solver(settings))

    return find
