"""Runs that several of the generator's tests look at."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # worker processes inherit sys.path and find fake_engine there

from fake_runs import MANY, fake_run  # noqa: E402


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run of the fake engine with everything in it: drops, errors, no convergence."""
    return fake_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The folder of an undisturbed run of MANY."""
    return fake_run(tmp_path_factory.mktemp("whole"), MANY)[0]
