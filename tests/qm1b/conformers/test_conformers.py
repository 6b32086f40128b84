"""Conformers: seeded by molecule, in workers that may hang or die."""

import time

import numpy as np
import pytest
from fake_runs import conformer, recipe
from rdkit import Chem
from rdkit.Chem import rdDistGeom

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from qm1b.conformers import embed as conformers_embed
from qm1b.conformers import embedding, rattle
from qm1b.conformers.embed import embed
from qm1b.conformers.embedding import molecule_seed
from qm1b.screening.geometries import Geometry
from qm1b.screening.screen import Candidate


def test_seed_depends_on_run_and_molecule_only():
    assert molecule_seed(0, "CCO") == molecule_seed(0, "CCO")
    seeds = {molecule_seed(s, m) for s in range(20) for m in ("C", "CC", "CCO")}
    assert len(seeds) == 60
    assert all(1 <= seed < 2**31 for seed in seeds)


def test_conformers_are_float32_heavy_atoms_first():
    result = embed(Candidate(7, "CCO", 0), recipe(3, seed=5))
    assert result.drop is None
    assert [c.conformer for c in result.conformers] == [0, 1, 2]
    first = result.conformers[0]
    assert first.numbers.tolist() == [6, 6, 8, 1, 1, 1, 1, 1, 1]
    np.testing.assert_array_equal(first.positions, first.positions.astype(np.float32))
    again = embed(Candidate(9, "CCO", 0), recipe(3, seed=5))
    np.testing.assert_array_equal(first.positions, again.conformers[0].positions)


def test_each_conformer_says_how_it_was_found():
    easy = embed(Candidate(1, "CCO", 0), recipe(1)).conformers[0]
    cage = embed(Candidate(1, "CC12C(=O)C3N=CN1C32", 0), recipe(1)).conformers[0]
    assert (easy.embedding, cage.embedding) == ("etkdg", "etkdg_random")
    assert (easy.relaxation, easy.conformer) == ("none", 0)


def test_relaxation_by_mmff_and_where_it_lacks_parameters_by_uff():
    free = embed(Candidate(1, "CCO", 0), recipe(1)).conformers[0]
    relaxed = embed(Candidate(1, "CCO", 0), recipe(1, relax="mmff")).conformers[0]
    assert relaxed.relaxation == "mmff94"
    assert 1e-3 < np.abs(free.positions - relaxed.positions).max() < 2
    (boron,) = embed(Candidate(1, "CB(C)C", 0), recipe(1, relax="mmff")).conformers
    assert boron.relaxation == "uff"
    assert embed(Candidate(1, "[He]", 0), recipe(1, relax="mmff")).drop.reason == "no_parameters"


def test_displacements_are_gaussian_and_belong_to_the_conformer():
    still = embed(Candidate(1, "C", 0), recipe(200, seed=1)).conformers
    moved = embed(Candidate(1, "C", 0), recipe(200, seed=1, rattle_angstrom=0.05)).conformers
    again = embed(Candidate(9, "C", 0), recipe(3, seed=1, rattle_angstrom=0.05)).conformers
    steps = np.array([m.positions - s.positions for m, s in zip(moved, still, strict=True)])
    steps *= BOHR_TO_ANGSTROM
    assert abs(steps.std() - 0.05) < 0.002  # 3,000 numbers: 0.0013 is two standard deviations
    assert abs(steps.mean()) < 0.004
    np.testing.assert_array_equal(again[2].positions, moved[2].positions)


def test_atoms_that_come_too_close_are_drawn_again_or_reported(monkeypatch):
    result = embed(Candidate(1, "CCC", 0), recipe(8, rattle_angstrom=0.3))
    for one in result.conformers:
        atoms = one.positions
        distances = np.linalg.norm(atoms[:, None] - atoms, axis=-1) + 9 * np.eye(len(atoms))
        assert distances.min() * BOHR_TO_ANGSTROM > 0.36  # two hydrogens at 0.6 of their radii
    monkeypatch.setattr(rattle, "CLOSEST", 9.0)  # no pair may come closer than it is
    hopeless = embed(Candidate(1, "CCC", 0), recipe(2, rattle_angstrom=0.3))
    assert hopeless.conformers == ()
    assert hopeless.drop.reason == "rattle_failed"


def test_a_failed_step_is_not_drawn_again_for_the_next_copy(monkeypatch):
    positions = np.array([[0, 0, 0.2], [0, 1.4, -0.9], [0, -1.4, -0.9]])
    water = Geometry(np.array([8, 1, 1], np.uint8), positions)
    candidate = Candidate(1, "O", 0, geometry=water)
    displaced = recipe(3, seed=1, rattle_angstrom=0.02)
    real, asked = rattle.rattled, []

    def fails_first(numbers, positions, sigma, seed, copy):
        asked.append(copy)
        return None if copy == 0 else real(numbers, positions, sigma, seed, copy)

    undisturbed = embed(candidate, displaced).conformers
    monkeypatch.setattr(conformers_embed, "rattled", fails_first)
    result = embed(candidate, displaced)
    assert asked == [0, 1, 2]
    assert [c.conformer for c in result.conformers] == [0, 1]
    np.testing.assert_array_equal(result.conformers[0].positions, undisturbed[1].positions)
    assert result.drop.reason == "fewer_conformers"


def test_a_limit_of_centuries_is_no_error():
    assert len(embed(Candidate(1, "CO", 0), recipe(1, timeout=1e11)).conformers) == 1


def test_what_cannot_be_embedded_is_reported(monkeypatch):
    # A bridgehead double bond with impossible stereo: artemisinin with a centre inverted.
    smiles = "C[C@H]1[C@@H](O)O[C@@H]2O[C@]3(C)CC[C@H]4[C@H](C)CC[C@@H]1[C@@]24OO3"
    result = embed(Candidate(1, smiles, 0), recipe(2, timeout=4.0))
    assert result.conformers == ()
    assert result.drop.reason == "embed_timeout"  # RDKit would try for minutes
    assert result.drop.detail == "0 of 2 conformers"
    monkeypatch.setattr(embedding, "_chunk", lambda *_, **__: [])  # RDKit gives up by itself
    assert embed(Candidate(1, "C", 0), recipe(2, timeout=4.0)).drop.reason == "embed_failed"


def test_a_few_conformers_do_not_depend_on_chunks_and_chunks_differ():
    few = embed(Candidate(1, "CCO", 0), recipe(4, seed=5)).conformers
    many = embed(Candidate(1, "CCO", 0), recipe(embedding.CHUNK + 4, seed=5)).conformers
    assert len(many) == embedding.CHUNK + 4
    assert len({c.positions.tobytes() for c in many}) == len(many)
    for ours, theirs in zip(few, many, strict=False):
        np.testing.assert_array_equal(ours.positions, theirs.positions)


def test_what_was_found_before_the_time_ran_out_is_kept(monkeypatch):
    real, limits = embedding._chunk, []

    def chunk(graph, count, seed, clock):
        limits.append(clock._deadline - time.monotonic())
        if len(limits) == 2:
            clock._deadline = 0.0  # the second chunk takes all the time that is left
        return real(graph, count, seed, clock)

    whole = embed(Candidate(1, "CCO", 0), recipe(200, seed=5, timeout=60.0))
    assert whole.drop is None
    monkeypatch.setattr(embedding, "_chunk", chunk)
    result = embed(Candidate(1, "CCO", 0), recipe(200, seed=5, timeout=60.0))
    assert 60 < limits[0] <= 0.8 * (60 + 200 * 0.1)  # more for more conformers
    assert len(result.conformers) == 128
    assert (result.drop.reason, result.drop.detail) == ("embed_timeout", "128 of 200 conformers")
    for ours, theirs in zip(result.conformers, whole.conformers, strict=False):
        np.testing.assert_array_equal(ours.positions, theirs.positions)


@pytest.mark.parametrize(("processor", "starved"), [(60.0, False), (30.5, False), (29.5, True)])
def test_a_strike_during_a_pause_does_not_count(processor, starved, monkeypatch):
    monkeypatch.setattr(embedding, "_times", lambda: (100.0, 7.0))
    clock = embedding.Clock(60.0)
    monkeypatch.setattr(embedding, "_times", lambda: (159.0, 7.0))
    assert not clock.is_over
    monkeypatch.setattr(embedding, "_times", lambda: (160.0, 7.0 + processor))
    assert clock.is_over
    assert clock.starved == starved


def test_a_pause_within_a_call_of_rdkit_is_told_even_if_all_are_found(monkeypatch):
    graph = Chem.AddHs(Chem.MolFromSmiles("CCO"))
    real = rdDistGeom.EmbedMultipleConfs

    def stopped(graph, count, parameters):
        if not parameters.useRandomCoords:
            time.sleep(1.1)  # RDKit then gives nothing
            return []
        return real(graph, count, parameters)

    monkeypatch.setattr(rdDistGeom, "EmbedMultipleConfs", stopped)
    like = conformer(1, (), seed=7)
    result = embedding.embedded(graph, like, 1, seconds=2.0)
    (only,) = result.conformers
    assert only.embedding == "etkdg_random"  # an undisturbed try gives etkdg
    assert result.starved
