"""Energy outliers among the conformers of a molecule."""

from dataclasses import replace

import numpy as np
import pytest
from fake_runs import conformer, row

from qm1b.rows.suspects import ASYMMETRIC, NO_GAP, OUTLIER, flagged, outliers


def rows(line, energies, status="converged"):
    return [
        row(conformer(line, (), smiles="C", conformer=i), status, energy=e)
        for i, e in enumerate(energies)
    ]


def suspects(flagged_rows):
    return [i for i, one in enumerate(flagged_rows) if one.suspect]


@pytest.mark.parametrize("odd", [-39.8, -40.2])
def test_one_in_another_state_stands_out(odd):
    conformers = flagged(rows(1, [-40.0, -40.01, -39.99, -40.005, odd]))
    assert suspects(conformers) == [4]
    assert conformers[4].suspect == OUTLIER


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
        each = [row for n, e in enumerate(energies) for row in rows(n + 1, [e])]
        who = {"seed": seed, "charge": charge, "smiles": smiles}
        return [replace(row, conformer=replace(row.conformer, **who)) for row in each]

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
    conformers = flagged(rows(1, [-40.0] * 5) + rows(1, [-39.0], "not_converged"))
    assert suspects(conformers) == []


def test_distances_in_ev():
    far, deviation = outliers(np.array([-40.0, -40.0, -40.0, -39.9]))
    assert far.tolist() == [False, False, False, True]
    assert deviation[3] == pytest.approx(2.7211, abs=1e-4)


F2 = np.array([9, 9], np.uint8), np.array([[0.3, 0.1, 0.0], [2.3, 1.1, 4.0]])


def states(energies, dipoles, charge=0, **result):
    """Rows of F2."""
    return [
        row(
            conformer(1, *F2, smiles="FF", conformer=i, charge=charge),
            energy=e,
            dipole=tuple(d),
            **result,
        )
        for i, (e, d) in enumerate(zip(energies, dipoles, strict=True))
    ]


def test_right_rows_are_not_suspect_where_most_are_wrong():
    """Four of six geometries ended as F+ F-, 20 eV too high, with a dipole of 7 e bohr."""
    ionic = 7 * (F2[1][1] - F2[1][0]) / np.linalg.norm(F2[1][1] - F2[1][0])
    energies = [-195.7, -196.5, -195.71, -195.72, -196.49, -195.69, -196.48]
    wrong = [e > -196 for e in energies]
    conformers = flagged(states(energies, [ionic * w for w in wrong]))
    assert [one.suspect for one in conformers] == [ASYMMETRIC * w for w in wrong]


def test_an_ion_s_dipole_is_taken_about_its_centre():
    centre = F2[1].mean(axis=0)
    assert suspects(flagged(states([-196.0], [2 * centre], charge=2))) == []
    assert suspects(flagged(states([-196.0], [centre], charge=2))) == [0]


def test_no_gap():
    (one,) = flagged(states([-196.0], [np.zeros(3)], homo=-0.2, lumo=-0.1999))
    assert one.suspect == NO_GAP
    assert suspects(flagged(states([-196.0], [np.zeros(3)], homo=-0.2, lumo=0.1))) == []
