"""Solvers shared by the tests: a program costs a quarter of a minute of compilation."""

from collections.abc import Callable

import pytest

from pyscf_ipu import Settings, Solver, enable_disk_cache


@pytest.fixture(scope="session")
def shared_programs(tmp_path_factory):
    """One disk cache for all test processes of this session, and for no other session."""
    base = tmp_path_factory.getbasetemp()
    session = base.parent if base.name.startswith("popen-") else base
    enable_disk_cache(session / "programs")


@pytest.fixture(scope="session")
def solver_of(shared_programs) -> Callable[..., Solver]:
    """A Solver for some settings; the same one for the same settings."""
    made: dict[Settings, Solver] = {}

    def find(**changes) -> Solver:
        settings = Settings(**changes)
        return made.setdefault(settings, Solver(settings))

    return find
