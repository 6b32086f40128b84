"""Errors of predictions, by hand."""

import numpy as np
import pytest
from ase.units import Bohr, Hartree
from toy_forces import toy

from schnet.errors import UserError
from schnet.samples.accuracy import Errors, ForceErrors, Predicted
from schnet.samples.targets import target_of

ENERGY = target_of("forces+energy")


def test_errors_of_energies_and_forces():
    samples = toy([0, 3])
    known = Predicted.in_file(samples)
    off = np.zeros_like(known.forces)
    off[0] = [0.003, 0.0, -0.004]
    baseline = known.values + np.array([0.02, -0.04])
    predicted = Predicted(known.values + np.array([0.001, -0.003]), known.forces + off)
    found = Errors.of(ENERGY, predicted, known, baseline, left_out=7)
    assert found.mae == pytest.approx(2.0 * Hartree, rel=1e-6)
    assert found.rmse == pytest.approx(np.sqrt(5.0) * Hartree, rel=1e-6)
    assert found.mean_predictor == pytest.approx(30.0 * Hartree, rel=1e-6)
    assert found.simplest == "atom references alone"
    assert (found.molecules, found.left_out) == (2, 7)
    unit, n = 1e3 * Hartree / Bohr, known.forces.size
    assert found.forces.mae == pytest.approx(0.007 * unit / n, rel=1e-6)
    assert found.forces.rmse == pytest.approx(0.005 * unit / n**0.5, rel=1e-6)
    assert found.forces.zero_forces == pytest.approx(unit * np.abs(samples.forces).mean(), rel=1e-5)
    without = Errors.of(ENERGY, Predicted(predicted.values), known, baseline, 0)
    assert without.forces is None


def test_the_number_by_which_epochs_are_compared():
    energies = Errors(mae=10.0, rmse=0.0, mean_predictor=0.0, molecules=1)
    assert energies.judged(3.0) == 10.0
    both = energies._replace(forces=ForceErrors(mae=40.0, rmse=0.0, zero_forces=0.0))
    assert both.judged(0.0) == 10.0
    assert both.judged(3.0) == pytest.approx((10.0 + 3.0 * 40.0 * Bohr) / 4.0, rel=1e-6)


def test_parts_are_joined_and_no_rows_are_refused():
    parts = [Predicted.in_file(toy(rows)) for rows in ([0, 1], [2])]
    whole = Predicted.in_file(toy([0, 1, 2]))
    joined = Predicted.joined(parts)
    assert len(joined.values) == 3
    assert joined.forces.shape == whole.forces.shape
    assert Predicted.joined([]).forces is None
    none = Predicted.joined([])
    with pytest.raises(UserError, match="no rows to evaluate but 4 of which"):
        Errors.of(ENERGY, none, none, np.zeros(0), 4)
