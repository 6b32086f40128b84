"""Atomisation energies: by hand, and what is NaN."""

import numpy as np
from fake_runs import conformer, row

from qm1b.reference.atomisation import atomisation_energies, contradicts, with_atomisation, wrong
from qm1b.rows.batch import Batch

ATOMS = {"H": -0.5, "O": -75.0}
NUMBERS = np.array([8, 1, 1, 1, 1, 6, 1], np.uint8)
OFFSETS = np.array([0, 3, 5, 7, 7])
ENERGY = np.array([-76.4, -1.2, -38.5, 0.25])


def batch(**columns):
    values = {"energy": ENERGY, "numbers": NUMBERS, "atom_offset": OFFSETS}
    return Batch(values | columns)


def test_water_and_hydrogen_by_hand():
    energies = atomisation_energies(ENERGY, NUMBERS, OFFSETS, ATOMS)
    np.testing.assert_allclose(energies[:2], [-0.4, -0.2], atol=1e-13)
    assert np.isnan(energies[2])  # carbon is not known
    assert energies[3] == 0.25  # no atoms at all


def test_rows_get_the_same_value_alone_and_together():
    who = [conformer(i, z) for i, z in enumerate(np.split(NUMBERS, OFFSETS[1:-1]))]
    rows = [row(c, energy=e) for c, e in zip(who, ENERGY.tolist(), strict=True)]
    together = [one.atomisation_energy for one in with_atomisation(rows, ATOMS)]
    alone = [with_atomisation([one], ATOMS)[0].atomisation_energy for one in rows]
    expected = atomisation_energies(ENERGY, NUMBERS, OFFSETS, ATOMS)
    np.testing.assert_array_equal(together, expected)
    np.testing.assert_array_equal(alone, expected)


def test_what_the_free_atoms_do_not_give_is_wrong():
    right = atomisation_energies(ENERGY, NUMBERS, OFFSETS, ATOMS)
    assert wrong(batch(atomisation_energy=right), ATOMS).tolist() == [False] * 4
    assert wrong(batch(atomisation_energy=right + 1e-5), ATOMS).tolist() == [
        True,
        True,
        False,
        True,
    ]
    lost = np.full(4, np.nan)
    assert wrong(batch(atomisation_energy=lost), ATOMS).tolist() == [True, True, False, True]


def test_a_missing_value_contradicts_nothing_but_a_missing_atom_does():
    right = atomisation_energies(ENERGY, NUMBERS, OFFSETS, ATOMS)
    assert not contradicts(batch(atomisation_energy=np.full(4, np.nan)), ATOMS)
    assert not contradicts(batch(atomisation_energy=right), ATOMS)
    assert contradicts(batch(atomisation_energy=right), {"H": -0.5})
    assert contradicts(batch(atomisation_energy=right), ATOMS | {"O": -75.1})
