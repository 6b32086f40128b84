"""Solvers shared by the tests, since compiling a program takes seconds; a user without a home."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pyscf_ipu import Settings, Solver


@pytest.fixture
def homeless(monkeypatch):
    """No folder for programs is named, and this user has no home."""

    def nobody():
        raise RuntimeError("Could not determine home directory.")

    for name in ("PYSCF_IPU_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nobody)


@pytest.fixture(scope="session")
def solver_of() -> Callable[..., Solver]:
    """A Solver for some settings; the same one for the same settings."""
    made: dict[Settings, Solver] = {}

    def find(**changes) -> Solver:
        settings = Settings(**{"grid_level": 0, **changes})
        return made.setdefault(settings, Solver(settings))

    return find
