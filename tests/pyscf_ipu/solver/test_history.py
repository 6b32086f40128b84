"""A fixed number of cycles, and the record of every cycle."""

import numpy as np
import pytest
from oracle import ground_state

import pyscf_ipu as pi
from pyscf_ipu.molecule.named.geometries import molecule_from_text
from pyscf_ipu.settings import Settings

pytestmark = pytest.mark.slow

LEVEL = {"xc": "hf", "precision": "float64"}


@pytest.fixture(scope="module")
def both():
    mol = molecule_from_text("water")
    solver = pi.Solver(Settings(**LEVEL, fixed_cycles=20, history=True))
    return mol, pi.rks(mol, **LEVEL, history=True), pi.rks(mol, solver=solver)


def test_the_record_ends_where_the_result_is(both):
    _, found, _ = both
    record = found.history
    assert {len(values) for values in record.values()} == {found.cycles}
    assert record["energy"][-1] == pytest.approx(found.energy, abs=1e-9)
    assert record["gap"][-1] == pytest.approx(found.gap, abs=1e-6)
    assert record["commutator_norm"][-1] < 1e-4 < record["commutator_norm"][0]
    assert found.converged


def test_energies_are_those_of_the_cycles(both):
    """The spread of the last five has its own way out of the loop; and the SCF comes down."""
    for found in both[1:]:
        energies = found.history["energy"]
        assert np.std(energies[-5:]) == pytest.approx(found.energy_std, rel=1e-6, abs=1e-14)
        assert (energies[1:] - energies[-1] > -1e-9).all()
        assert energies[0] - energies[-1] > 0.01


def test_exactly_so_many_cycles(both):
    mol, found, fixed = both
    assert (int(fixed.cycles), fixed.status) == (20, "converged")
    assert fixed.cycles > found.cycles
    assert len(fixed.history["energy"]) == 20
    np.testing.assert_allclose(fixed.history["energy"][:5], found.history["energy"][:5], atol=1e-9)
    assert fixed.energy == pytest.approx(float(ground_state(mol, xc="hf").e_tot), abs=1e-9)
    assert fixed.energy_std < 1e-10  # the last five of twenty stand still


@pytest.mark.long
def test_too_few_cycles_are_not_converged():
    mol = molecule_from_text("water")
    found = pi.rks(mol, solver=pi.Solver(Settings(**LEVEL, fixed_cycles=3)))
    assert (int(found.cycles), found.status) == (3, "not_converged")
    assert found.history is None


def test_lists_and_what_does_not_go_together(both):
    mol, found, _ = both
    rows = pi.rks([mol, mol], **LEVEL, history=True)
    np.testing.assert_array_equal(rows.history[1]["energy"], found.history["energy"])
    assert "history" in found.to_dict()
    with pytest.raises(ValueError, match="stability=True runs several"):
        pi.rks(mol, history=True, stability=True)


def test_wrong_settings():
    with pytest.raises(ValueError, match="fixed_cycles is -1: give a whole number of at least 0"):
        Settings(fixed_cycles=-1).check()


def test_settings_of_earlier_runs_keep_their_fingerprint():
    assert not {"fixed_cycles", "history"} & set(Settings().to_dict())
    assert Settings(fixed_cycles=20).to_dict()["fixed_cycles"] == 20


@pytest.mark.long
def test_an_scf_that_begins_anew_in_float64_has_no_record():
    mol = pi.Molecule([1] * 4, [[0, 0, 0.945 * i] for i in range(4)])  # S has 6e-4
    found = pi.rks(mol, basis="6-31g", xc="hf", precision="mixed", history=True)
    assert found.status == "converged"
    assert {name: len(values) for name, values in found.history.items()} == {
        "energy": 0,
        "commutator_norm": 0,
        "gap": 0,
    }
