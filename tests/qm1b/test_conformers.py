"""Conformers: seeded by molecule, in workers that may hang or die."""

import time

import fake_embedder
import numpy as np

from qm1b.conformers import EmbedPool, embed, molecule_seed
from qm1b.smiles import Candidate
from qm1b.workers import wait


def test_seed_depends_on_run_and_molecule_only():
    assert molecule_seed(0, "CCO") == molecule_seed(0, "CCO")
    seeds = {molecule_seed(s, m) for s in range(20) for m in ("C", "CC", "CCO")}
    assert len(seeds) == 60
    assert all(1 <= seed < 2**31 for seed in seeds)


def test_conformers_are_float32_heavy_atoms_first():
    found = embed(Candidate(7, "CCO", 0), 3, run_seed=5)
    assert found.drop is None
    assert [c.conformer for c in found.conformers] == [0, 1, 2]
    first = found.conformers[0]
    assert first.numbers.tolist() == [6, 6, 8, 1, 1, 1, 1, 1, 1]
    np.testing.assert_array_equal(first.positions, first.positions.astype(np.float32))
    again = embed(Candidate(9, "CCO", 0), 3, run_seed=5)
    np.testing.assert_array_equal(first.positions, again.conformers[0].positions)


def test_what_cannot_be_embedded_is_reported():
    # A bridgehead double bond with impossible stereo: artemisinin with a centre inverted.
    smiles = "C[C@H]1[C@@H](O)O[C@@H]2O[C@]3(C)CC[C@H]4[C@H](C)CC[C@@H]1[C@@]24OO3"
    found = embed(Candidate(1, smiles, 0), 2, run_seed=0, timeout=4.0)
    assert found.conformers == ()
    assert found.drop.reason == "embed_failed"
    assert found.drop.detail == "0 of 2 conformers"


def test_a_hanging_or_dying_worker_loses_one_molecule(tmp_path):
    pool = EmbedPool(2, 1, 0, 0.5, tmp_path / "log", serve=fake_embedder.serve)
    try:
        for worker in pool.workers:
            worker.fresh = False  # no allowance for imports: the test would wait for it
        for line, smiles in enumerate(("C", "N", "O", "CC", "CCC"), start=1):
            pool.submit(Candidate(line, smiles, 0))
        found = {}
        start = time.monotonic()
        while pool.pending and time.monotonic() - start < 60:
            wait(pool.workers, 0.1)
            for worker in pool.workers:
                if worker.job is not None and worker.job.smiles != "N":
                    worker.deadline = float("inf")
            found |= {result.line: result for result in pool.results()}
    finally:
        pool.stop()
    assert found[2].drop.reason == "embed_timeout"
    assert found[3].drop.reason == "embed_crash"
    assert all(len(found[line].conformers) == 1 for line in (1, 4, 5))
