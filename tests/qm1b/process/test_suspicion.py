"""Suspects are given up only on a machine that has computed a probe."""

import pytest

from qm1b.errors import UserError
from qm1b.process.suspicion import MAX_PROBES, Circumstances, Suspicion, how_it_died, named


@pytest.fixture
def suspicion(tmp_path):
    return Suspicion(Circumstances("embedding", "methane", tmp_path / "log"))


def test_a_probe_confirms_those_who_were_held_when_it_was_sent(suspicion):
    assert suspicion.hold("a", 1)
    assert not suspicion.hold("b", 2)  # a probe is under way
    assert len(suspicion) == 2
    assert suspicion.confirmed() == ([1], True)
    assert suspicion.confirmed() == ([2], False)
    assert len(suspicion) == 0


def test_a_machine_that_fails_the_probe_ends_the_run(suspicion):
    for line in range(7):
        suspicion.hold(named(line, ""), line)
    for _ in range(MAX_PROBES - 1):
        suspicion.probe_failed("died")
    with pytest.raises(
        UserError, match=r"line 4 \(without SMILES\) and 2 more, and then with meth"
    ):
        suspicion.probe_failed("died")


def test_how_it_died():
    assert how_it_died("compute", 3) == "the compute process died, exit code 3"
    assert how_it_died("embedding", -11) == "the embedding process died of SIGSEGV"
