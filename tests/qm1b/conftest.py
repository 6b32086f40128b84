"""Runs that several of the generator's tests look at."""

import pytest
from fake_runs import MANY, fake_run


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run of the fake engine with everything in it: drops, errors, no convergence."""
    return fake_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The folder of an undisturbed run of MANY."""
    return fake_run(tmp_path_factory.mktemp("whole"), MANY)[0]
