"""What is no fault of a molecule ends the run: it never becomes a drop, nor an error of rows."""

from unittest.mock import patch

import pytest
from fake_runs import conformer, fake_run, row, settings
from rdkit import rdBase
from threads import Threads

from qm1b.conformers import embed as of_molecules
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.process import worker
from qm1b.rows.unit import Unit
from qm1b.run.progress.progress import Stats
from qm1b.screening.screen import Candidate

ENGINE = "fake_engine:WrongMachine"


@pytest.fixture(autouse=True)
def threads():
    with patch.object(worker, "_CONTEXT", Threads):
        yield


@pytest.mark.parametrize("step", ["shape", "run", "retry"])
def test_a_setting_ends_the_run_with_its_sentence(step, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_OUTAGE", f"{step} setting")
    with pytest.raises(UserError, match=r"^PYSCF_IPU_SWITCH=maybe: set it to on or off$"):
        fake_run(tmp_path, "Cl\n", 1, ENGINE, conformers=1)
    assert not shards.shards(tmp_path / "out-1")


def test_a_bug_is_no_drop(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_OUTAGE", "shape bug")
    with pytest.raises(ValueError, match="SWITCH") as error:
        fake_run(tmp_path, "C\n", 1, ENGINE, conformers=1)
    assert not isinstance(error.value, UserError)
    assert not shards.shards(tmp_path / "out-1")


def test_a_package_that_is_missing_in_a_worker_is_no_error_of_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_OUTAGE", "run import")
    with pytest.raises(RuntimeError, match=r"qm1b-compute failed: ImportError.*workers\.log has"):
        fake_run(tmp_path, "C\n", 1, ENGINE, conformers=1)


def test_a_bug_of_the_embedding_is_no_drop(tmp_path, monkeypatch):
    def embed(candidate, settings):
        if candidate.line:
            raise TypeError("no such argument")

    monkeypatch.setattr(of_molecules, "embed", embed)
    with pytest.raises(RuntimeError, match=r"qm1b-embed failed: TypeError.*workers\.log has"):
        fake_run(tmp_path, "C\n", conformers=1)


def test_what_rdkit_raises_is_a_drop(tmp_path, monkeypatch):
    real = of_molecules.embed

    def embed(candidate, settings):
        if candidate.smiles == "CC":
            raise RuntimeError("Pre-condition Violation")
        return real(candidate, settings)

    monkeypatch.setattr(of_molecules, "embed", embed)
    out, _ = fake_run(tmp_path, "C\nCC\n", conformers=1)
    (drop,) = shards.read_drops(shards.shards(out)[0])
    assert (drop.smiles, drop.reason) == ("CC", "embed_failed")


def test_a_smiles_that_rdkit_cannot_read_again_is_an_error_of_rdkit():
    with rdBase.BlockLogs(), pytest.raises(RuntimeError, match="the SMILES that it wrote"):
        of_molecules.embed(Candidate(1, "C(((", 0), settings())


def test_units_of_a_cluster_count_their_troubles():
    stats = Stats(n_lines=2, conformers=1)
    rows = [row(conformer(line), troubles=("x",)) for line in (1, 2)]
    stats.add_unit(Unit(0, rows=rows), 2)
    assert stats.troubles == {"x": 2}
    stats.uncount_row(rows[0])
    assert stats.troubles == {"x": 1}
