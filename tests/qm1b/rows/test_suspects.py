"""Energy outliers among the conformers of a molecule."""

from dataclasses import replace

import numpy as np
import pytest

from qm1b.rows.schema import Conformer, Result, Row
from qm1b.rows.suspects import OUTLIER, flagged, outliers


def rows(line, energies, status="converged"):
    none = np.zeros(0, np.uint8), np.zeros((0, 3))
    return [
        Row(Conformer(line, "C", i, 1, 0, *none), Result(status, 1, energy=e))
        for i, e in enumerate(energies)
    ]


def suspects(found):
    return [i for i, row in enumerate(found) if row.result.suspect]


@pytest.mark.parametrize("odd", [-39.8, -40.2])
def test_one_in_another_state_stands_out(odd):
    found = flagged(rows(1, [-40.0, -40.01, -39.99, -40.005, odd]))
    assert suspects(found) == [4]
    assert found[4].result.suspect == OUTLIER


def test_molecules_are_judged_apart():
    assert suspects(flagged(rows(1, [-40.0] * 4) + rows(2, [-30.0] * 4))) == []


@pytest.mark.parametrize(
    "energies", [[], [-40.0], [-40.0, -39.0], [-40.0, -40.2, -39.8, -40.1, -39.9]]
)
def test_few_conformers_and_a_wide_spread_say_nothing(energies):
    assert suspects(flagged(rows(1, energies))) == []


def test_frames_of_one_molecule_stand_on_many_lines():
    """Entries with a SMILES, and frames without one, which the seed tells apart."""

    def frames(energies, seed=1, charge=0, smiles=""):
        found = [row for n, e in enumerate(energies) for row in rows(n + 1, [e])]
        who = {"seed": seed, "charge": charge, "smiles": smiles}
        return [replace(row, conformer=replace(row.conformer, **who)) for row in found]

    energies = [-40.0, -40.01, -39.99, -40.005, -39.8]
    assert suspects(flagged(frames(energies))) == [4]
    assert suspects(flagged(frames(energies, smiles="C", seed=5))) == [4]
    pairs = zip(frames(energies), frames([-90.0] * 5, seed=2), strict=True)
    mixed = [row for pair in pairs for row in pair]
    assert suspects(flagged(mixed)) == [8]
    ions = frames(energies[:4]) + frames([-39.8], charge=2)
    assert suspects(flagged(ions)) == []


def test_a_little_is_not_far():
    assert suspects(flagged(rows(1, [-40.0] * 5 + [-39.97]))) == []


def test_what_did_not_converge_has_its_status():
    found = flagged(rows(1, [-40.0] * 5) + rows(1, [-39.0], "not_converged"))
    assert suspects(found) == []


def test_distances_in_ev():
    far, deviation = outliers(np.array([-40.0, -40.0, -40.0, -39.9]))
    assert far.tolist() == [False, False, False, True]
    assert deviation[3] == pytest.approx(2.7211, abs=1e-4)
