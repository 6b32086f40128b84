"""Energy outliers among the conformers of a molecule."""

import numpy as np
import pytest

from qm1b.schema import Conformer, Result, Row
from qm1b.suspects import LEAST_HARTREE, OUTLIER, flagged


def rows(line, energies, status="converged"):
    none = np.zeros(0, np.uint8), np.zeros((0, 3))
    return [
        Row(Conformer(line, "C", i, 1, 0, *none), Result(status, 1, energy=e))
        for i, e in enumerate(energies)
    ]


def suspects(found):
    return [i for i, row in enumerate(found) if row.result.suspect]


def test_one_in_another_state_stands_out():
    found = flagged(rows(1, [-40.0, -40.01, -39.99, -40.005, -39.8]))
    assert suspects(found) == [4]
    assert found[4].result.suspect == OUTLIER


def test_molecules_are_judged_apart():
    assert suspects(flagged(rows(1, [-40.0] * 4) + rows(2, [-30.0] * 4))) == []


@pytest.mark.parametrize("energies", [[-40.0, -40.0, -39.0], [-40.0, -40.2, -39.8, -40.1, -39.9]])
def test_few_conformers_and_a_wide_spread_say_nothing(energies):
    assert suspects(flagged(rows(1, energies))) == []


def test_lower_is_not_suspicious_and_neither_is_a_little():
    assert suspects(flagged(rows(1, [-40.0] * 5 + [-41.0]))) == []
    assert suspects(flagged(rows(1, [-40.0] * 5 + [-40.0 + 0.9 * LEAST_HARTREE]))) == []


def test_what_did_not_converge_has_its_status():
    found = flagged(rows(1, [-40.0] * 5) + rows(1, [-39.0], "not_converged"))
    assert suspects(found) == []
