"""Compute processes that die: a molecule's fault ends in its row, a machine's ends the run."""

import pytest
from fake_runs import conformer, fake_run

from qm1b.engine.deaths import Deaths
from qm1b.engine.messages import Job
from qm1b.errors import UserError
from qm1b.folder import same, shards
from qm1b.process.suspicion import MAX_PROBES

PROBE = Job("probe", (conformer(0),), is_probe=True)


def test_one_by_one_then_alone_then_only_if_the_machine_is_sound(tmp_path):
    deaths = Deaths(lambda: PROBE, tmp_path / "log")
    batch = Job("s", (conformer(1), conformer(2)))
    first, second = deaths.again(batch, "died", hung=False)
    assert [j.conformers[0].line for j in (first, second)] == [1, 2]
    assert not first.alone
    (again,) = deaths.again(first, "died", hung=False)
    assert again.alone
    (patient,) = deaths.again(second, "no answer", hung=True)
    assert not patient.alone
    assert deaths.again(again, "died", hung=False) == [PROBE]
    assert deaths.again(patient, "no answer", hung=True) == []  # waits for a probe of its own
    convicted, probes = deaths.probed()
    assert [(s.job.conformers[0].line, s.error) for s in convicted] == [(1, "died")]
    assert probes == [PROBE]
    assert [s.job.conformers[0].line for s in deaths.probed()[0]] == [2]


def test_a_machine_that_fails_the_probe_ends_the_run(tmp_path):
    deaths = Deaths(lambda: PROBE, tmp_path / "log")
    job = Job("s", (conformer(7),), deaths=1)
    assert deaths.again(job, "died", hung=False) == [PROBE]
    for _ in range(MAX_PROBES - 1):
        assert deaths.again(PROBE, "died", hung=False) == [PROBE]
    with pytest.raises(UserError, match=r"line 7 \(\[He\]\), and then with a hydrogen.*same comm"):
        deaths.again(PROBE, "died", hung=False)


def test_an_outage_writes_no_errors_and_the_same_command_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_OUTAGE", str(tmp_path / "mark"))
    with pytest.raises(UserError, match=r"died of SIGKILL.*the cause is this machine"):
        fake_run(tmp_path, "O\nC\nCC\n", factory="fake_engine:Outage")
    out = tmp_path / "out-2"
    assert shards.shards(out) == []
    assert shards.read_manifest(out).status == "failed"
    _, summary = fake_run(tmp_path, "O\nC\nCC\n")
    assert summary.tally.statuses == {"converged": 6}


def test_processes_that_are_killed_now_and_then_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_OUTAGE", str(tmp_path / "mark"))
    quiet, _ = fake_run(tmp_path, "C\nCCCCC\n", conformers=1, workers=1)
    killed, summary = fake_run(
        tmp_path, "C\nCCCCC\n", conformers=1, factory="fake_engine:KilledOnce"
    )
    assert len(list(tmp_path.glob("mark-*"))) == 2
    assert summary.tally.statuses == {"converged": 2}
    assert same.differences(quiet, killed) == []
