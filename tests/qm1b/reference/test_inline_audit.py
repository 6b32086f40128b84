"""The in-line audit: which rows, and what stands in them."""

from dataclasses import replace

import numpy as np
import pytest
from fake_runs import conformer, fake_run, row

from qm1b.cli import main
from qm1b.commands.ending import outcome
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.reference import inline_audit
from qm1b.reference.inline_audit import audited, is_audited
from qm1b.reference.recompute import Reference, recompute
from qm1b.settings import PRESETS

LEVEL = PRESETS["qm1b"]


def conformers(count):
    hydrogen = (1, 1), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.4]])
    return [
        conformer(i // 4 + 1, *hydrogen, smiles="[H][H]", conformer=i % 4) for i in range(count)
    ]


def computed(status="converged", **values):
    """A row of hydrogen."""
    return row(conformers(1)[0], status, n_ao=2, energy=-1.0, **values)


def test_a_share_of_rows_that_depends_on_the_seed_alone():
    chosen = [c for c in conformers(4000) if is_audited(c, 0.1, seed=0)]
    assert 300 < len(chosen) < 500
    assert all(is_audited(c, 0.5, seed=0) for c in chosen)  # a larger share holds a smaller one
    assert sum(is_audited(c, 0.1, seed=1) for c in chosen) < 100
    assert not any(is_audited(c, 0.0, seed=0) for c in conformers(100))
    assert all(is_audited(c, 1.0, seed=0) for c in conformers(100))


def test_pyscf_stands_beside_the_result():
    result = computed()
    (audit,) = audited([result], LEVEL, 1.0, seed=0)
    assert audit.energy == -1.0
    assert audit.reference_energy == pytest.approx(-1.16, abs=0.02)
    assert audit.reference_homo < 0 < audit.reference_lumo
    assert np.abs(audit.reference_dipole).max() < 1e-6
    assert audited([result], LEVEL, 0.0, seed=0) == (result,)


def test_forces_are_compared_if_there_are_any():
    level = replace(LEVEL, xc="hf")
    expected = recompute(conformers(1)[0], level, forces=True).forces
    (x, y, z), other = expected
    result = computed(forces=((x + 1e-3, y, z), other))
    (audit,) = audited([result], level, 1.0, seed=0)
    assert audit.reference_forces_error == pytest.approx(1e-3, abs=1e-9)
    assert audit.forces == result.forces
    (without,) = audited([replace(result, forces=())], level, 1.0, seed=0)
    assert np.isnan(without.reference_forces_error)


def test_a_run_says_what_it_has_audited(tmp_path, capsys):
    out, _ = fake_run(tmp_path, "[H][H]\nO\n", conformers=2, audit=1.0)
    (path,) = shards.shards(out)
    shard = shards.read_shard(path)
    assert np.isfinite(shard["reference_energy"]).all()
    assert shard["reference_dipole"].shape == (4, 3)
    assert main(["info", str(out)]) == 0
    assert "audited      4 rows" in capsys.readouterr().out


def test_only_converged_rows_are_compared(tmp_path, capsys, monkeypatch):
    out, _ = fake_run(tmp_path, "[H][H]\nCl\n", conformers=2)
    (path,) = shards.shards(out)
    shard = shards.read_shard(path)
    good = shard["converged"]
    assert sorted(good) == [False, False, True, True]
    shard.columns["reference_energy"] = shard["energy"] + np.where(good, 1e-3, 1e3)
    real = shards.read_whole(path)
    monkeypatch.setattr(shards, "read_whole", lambda path: (real[0], shard, real[2]))
    assert main(["info", str(out)]) == 0
    text = capsys.readouterr().out
    assert "audited      2 rows, energy against PySCF: mean 27.211 meV, largest 27.211 meV" in text


def test_a_share_is_at_most_all(tmp_path, capsys):
    assert main(["generate", "--audit", "2", "--out", str(tmp_path / "x")]) == 2
    assert "0 to 1" in capsys.readouterr().err


def raising(error):
    def recompute(*_, **__):
        raise error

    return recompute


def test_an_audit_that_fails_is_named_and_changes_no_number(monkeypatch):
    not_ours = computed("not_converged")
    assert audited([not_ours], LEVEL, 1.0, seed=0) == (not_ours,)
    ours = computed()
    monkeypatch.setattr(inline_audit, "recompute", raising(np.linalg.LinAlgError("singular")))
    (audit,) = audited([ours], LEVEL, 1.0, seed=0)
    assert repr(audit) == repr(replace(ours, troubles=("the audit raised LinAlgError",)))
    monkeypatch.setattr(inline_audit, "recompute", raising(ValueError("infs or NaNs")))
    (audit,) = audited([ours], LEVEL, 1.0, seed=0)
    assert repr(audit) == repr(replace(ours, troubles=("the audit raised ValueError",)))
    monkeypatch.setattr(inline_audit, "recompute", lambda *_, **__: Reference((), 0.0))
    (audit,) = audited([ours], LEVEL, 1.0, seed=0)
    assert repr(audit) == repr(replace(ours, troubles=("the audit did not converge",)))
    monkeypatch.setattr(inline_audit, "recompute", raising(UserError("no such basis")))
    with pytest.raises(UserError, match="no such basis"):
        audited([ours], LEVEL, 1.0, seed=0)


@pytest.mark.parametrize("error", [TypeError("no such argument"), ImportError("no dftd3")], ids=str)
def test_an_error_of_the_program_is_no_failed_audit(error, monkeypatch, tmp_path):
    monkeypatch.setattr(inline_audit, "recompute", raising(error))
    with pytest.raises(RuntimeError, match=rf"qm1b-compute failed: .*{error}.*workers.log"):
        fake_run(tmp_path, "O\n", workers=1, conformers=1, audit=1.0)
    out = tmp_path / "out-1"
    assert shards.read_manifest(out).status == "failed"
    assert not shards.shards(out)


def test_failed_audits_are_counted(monkeypatch, tmp_path):
    monkeypatch.setattr(inline_audit, "recompute", raising(RuntimeError("out of scratch")))
    out, summary = fake_run(tmp_path, "O\nC\n", conformers=2, audit=1.0)
    assert shards.read_manifest(out).runs[-1]["troubles"] == {"the audit raised RuntimeError": 4}
    assert "4 rows: the audit raised RuntimeError; see workers.log" in outcome(summary)
