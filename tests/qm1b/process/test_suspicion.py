"""Suspects are given up only on a machine that has computed a probe."""

from dataclasses import replace

import pytest
from fake_runs import conformer

from qm1b.errors import UserError
from qm1b.process.jobs import Job, Lost
from qm1b.process.suspicion import MAX_PROBES, Suspicion, how_it_died


def suspect(line, smiles="[He]"):
    return Lost(Job((replace(conformer(line), smiles=smiles),)), "died")


@pytest.fixture
def suspicion(tmp_path):
    return Suspicion("embedding", "methane", tmp_path / "log")


def test_a_probe_confirms_those_who_were_held_when_it_was_sent(suspicion):
    a, b = suspect(1), suspect(2)
    assert suspicion.hold(a)
    assert not suspicion.hold(b)  # a probe is under way
    assert len(suspicion) == 2
    assert suspicion.confirmed() == ([a], True)
    assert suspicion.confirmed() == ([b], False)
    assert len(suspicion) == 0


def test_a_machine_that_fails_the_probe_ends_the_run(suspicion):
    for line in range(7):
        suspicion.hold(suspect(line, smiles=""))
    for _ in range(MAX_PROBES - 1):
        suspicion.probe_failed("died")
    with pytest.raises(
        UserError, match=r"line 4 \(without SMILES\) and 2 more, and then with meth"
    ):
        suspicion.probe_failed("died")


def test_how_it_died():
    assert how_it_died("compute", 3) == "the compute process died, exit code 3"
    assert how_it_died("embedding", -11) == "the embedding process died of SIGSEGV"
