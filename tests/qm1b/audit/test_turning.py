"""Turning a molecule: exact energies do not notice, those of a grid do."""

from dataclasses import replace

import numpy as np
import pytest
from fake_runs import conformer

from pyscf_ipu.settings import Settings
from qm1b.audit import turning
from qm1b.reference.recompute import recompute

WATER = conformer(3, [8, 1, 1], [[0.1, 0, 0.2], [1.5, 0.2, -0.9], [-1.4, 0.1, -0.8]], smiles="O")
HF = Settings(basis="sto-3g", xc="hf", precision="float64")


def spread_at(level):
    turned = [WATER, *turning.orientations(WATER)]
    references = [recompute(one, level, forces=True) for one in turned]
    return turning.spread(WATER, references)


def test_a_turned_molecule_is_the_same_molecule():
    centre = WATER.positions.mean(axis=0)
    inside = WATER.positions - centre
    for turned in turning.orientations(WATER):
        arms = turned.positions - centre
        np.testing.assert_allclose(arms @ arms.T, inside @ inside.T, atol=1e-12)
        np.testing.assert_allclose(np.linalg.det(arms), np.linalg.det(inside), atol=1e-12)
        assert np.abs(arms - inside).max() > 0.5
    for rotation in turning.ROTATIONS:
        assert np.linalg.det(rotation) == pytest.approx(1.0)


def test_without_a_grid_nothing_changes():
    noise = spread_at(HF)
    assert (noise.line, noise.conformer) == (3, 0)
    assert noise.energy_mev < 1e-5
    assert noise.force_mev_angstrom < 1e-2


def test_a_coarse_grid_is_noisier_than_a_fine_one():
    coarse, fine = (spread_at(replace(HF, xc="pbe", grid_level=n)) for n in (0, 3))
    assert 1.0 < coarse.energy_mev < 100.0
    assert fine.energy_mev < 0.1 * coarse.energy_mev
    assert fine.force_mev_angstrom < 0.1 * coarse.force_mev_angstrom


def test_without_convergence_there_is_no_spread():
    reference = recompute(WATER, HF)
    lost = replace(reference, converged=False)
    assert turning.spread(WATER, [reference, reference, lost]) is None
    assert turning.spread(WATER, [reference] * 3).force_mev_angstrom is None
