"""RDKit workers that hang, die or stand still: only a molecule's own fault loses it."""

import os
import signal
import time
from contextlib import suppress

import fake_embedder
import numpy as np
import pytest
from fake_runs import recipe

from qm1b.conformers import embed_pool
from qm1b.conformers.embed import embed
from qm1b.conformers.embed_pool import EmbedPool
from qm1b.errors import UserError
from qm1b.process.worker import Worker, wait
from qm1b.screening.screen import Candidate


def embedded(pool, *smiles, also=lambda: None):
    """What becomes of some molecules, by line from 1."""
    try:
        for line, text in enumerate(smiles, start=1):
            pool.submit(Candidate(line, text, 0))
        outcomes = {}
        end = time.monotonic() + 90
        while len(outcomes) < len(smiles) and time.monotonic() < end:
            wait(pool.workers, 0.05)
            also()
            results = list(pool.results())
            assert not {result.line for result in results} & set(outcomes)
            outcomes |= {result.line: result for result in results}
        assert pool.pending == 0
        return outcomes
    finally:
        pool.stop()


def patient(pool, letter, again=False):
    """No limit for some molecules, or for their second try: other tests may need the processor."""
    for worker in pool.workers:
        job = worker.job
        if job is not None and letter in job.items[0].smiles and (job.lost or not again):
            worker.deadline = float("inf")


def same_as_undisturbed(outcomes, recipe, *smiles):
    for line, text in enumerate(smiles, start=1):
        calm = embed(Candidate(line, text, 0), recipe)
        assert outcomes[line].drop == calm.drop
        for ours, theirs in zip(outcomes[line].conformers, calm.conformers, strict=True):
            np.testing.assert_array_equal(ours.positions, theirs.positions)
            assert (ours.seed, ours.embedding) == (theirs.seed, theirs.embedding)


@pytest.mark.slow
def test_a_hanging_or_dying_worker_loses_one_molecule(tmp_path, monkeypatch):
    monkeypatch.setattr(Worker, "starved", property(lambda self: self.job.items[0].smiles == "N"))
    monkeypatch.setattr(embed_pool, "serve", fake_embedder.serve)
    pool = EmbedPool(2, recipe(1, timeout=0.5), tmp_path / "log")
    outcomes = embedded(pool, "C", "N", "O", "CC", "F", "CCC", also=lambda: patient(pool, "C"))
    drops = {line: (r.drop.reason, r.drop.detail) for line, r in outcomes.items() if r.drop}
    assert drops == {
        2: ("embed_timeout", "no result in 1 s, in 3 tries"),  # it never computed
        3: ("embed_crash", "the embedding process died, exit code 9, in 3 tries"),
        5: ("embed_timeout", "no result in 1 s"),  # it used its time: once is enough
    }
    assert all(len(outcomes[line].conformers) == 1 for line in (1, 4, 6))


def test_who_is_killed_or_stopped_by_somebody_is_embedded_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_MARKS", str(tmp_path / "mark"))
    settings = recipe(3, timeout=1.0)
    monkeypatch.setattr(embed_pool, "serve", fake_embedder.killed_once)
    pool = EmbedPool(2, settings, tmp_path / "log")
    smiles = ("C", "CC", "CCC")
    outcomes = embedded(pool, *smiles, also=lambda: patient(pool, "C", again=True))
    assert len(list(tmp_path.glob("mark-*"))) >= 3
    same_as_undisturbed(outcomes, settings, *smiles)


def test_a_molecule_is_tried_again_alone_and_given_up_after_a_probe(tmp_path, monkeypatch):
    monkeypatch.setattr(embed_pool, "serve", fake_embedder.serve)
    pool = EmbedPool(2, recipe(1), tmp_path / "log")
    together = []

    def look():
        again = [job for job in pool.jobs if job.lost or job.is_probe]
        together.append(bool(again) and len(pool.jobs) > 1)

    outcomes = embedded(pool, "O", "CC", "CCC", "CCCC", also=look)
    assert outcomes[1].drop.reason == "embed_crash"
    assert not any(together)


def test_kills_from_outside_lose_nothing(tmp_path):
    settings = recipe(20)
    pool = EmbedPool(1, settings, tmp_path / "log")
    smiles = ["C" * n for n in range(6, 12)]
    killed = []

    def kill():
        worker = pool.workers[0]
        line = worker.job and worker.job.items[0].line
        if line is not None and len(killed) < 6 and line not in killed:
            with suppress(ProcessLookupError):  # it has just been killed, and is not replaced yet
                os.kill(worker.process.pid, signal.SIGKILL)
                killed.append(line)

    outcomes = embedded(pool, *smiles, also=kill)
    assert killed
    same_as_undisturbed(outcomes, settings, *smiles)


def test_a_machine_that_cannot_embed_methane_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(embed_pool, "serve", fake_embedder.outage)
    pool = EmbedPool(1, recipe(1), tmp_path / "log")
    words = (
        r"embedding processes keep dying \(the embedding process died of SIGKILL\): with line 1 "
    )
    with pytest.raises(UserError, match=words + r"\(CC\), and then with methane too.*same command"):
        embedded(pool, "CC", "CCC")


def test_workers_that_cannot_start_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(embed_pool, "MAX_UNREADY", 1)
    monkeypatch.setattr(embed_pool, "serve", fake_embedder.no_start)
    pool = EmbedPool(1, recipe(1), tmp_path / "log")
    with pytest.raises(UserError, match=r"embedding processes cannot start.*no RDKit here"):
        embedded(pool, "CC")


def test_what_waits_is_forgotten_when_the_run_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(embed_pool, "serve", fake_embedder.outage)
    pool = EmbedPool(1, recipe(1), tmp_path / "log")
    try:
        for line in range(3):
            pool.submit(Candidate(line + 1, "C", 0))
        pool.forget()
        assert pool.pending == 0
    finally:
        pool.stop()
