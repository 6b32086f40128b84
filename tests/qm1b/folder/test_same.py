from pathlib import Path

import numpy as np
import pytest

from qm1b.folder import same
from qm1b.rows.batch import Batch


@pytest.fixture
def units(monkeypatch):
    """Two shards of one column each."""

    def make(name, ours, theirs):
        both = {"a": (None, Batch({name: ours}), []), "b": (None, Batch({name: theirs}), [])}
        monkeypatch.setattr(same.shards, "read_whole", lambda path: both[path.name])
        return list(same._unit_differences(Path("a"), Path("b")))

    return make


VALUES = np.array([-1.5, np.nan, 2.0])


def test_equal_values_and_nans_are_the_same(units):
    assert units("energy", VALUES, VALUES.copy()) == []


def test_a_last_digit_counts(units):
    assert units("energy", VALUES, VALUES + 1e-8) == ["energy differs by up to 1e-08"]
    assert units("cycles", np.array([1]), np.array([2])) == ["cycles differs"]
    assert units("energy", VALUES, VALUES[:2]) == ["energy differs"]


def test_atomisation_energies_of_two_machines_may_round_differently(units):
    name = "atomisation_energy"
    assert units(name, VALUES, VALUES + 1e-8) == []
    assert units(name, VALUES, VALUES + 1e-4) == [f"{name} differs by up to 0.0001"]
    assert units(name, VALUES, np.full(3, np.nan)) == [f"{name} differs by up to nan"]
    assert units(name, VALUES, VALUES[:2]) == [f"{name} differs"]
