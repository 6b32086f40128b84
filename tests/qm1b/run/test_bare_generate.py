"""`qm1b generate` without a file computes the bundled molecules, and says how to give others."""

import pytest

from qm1b.cli import main


@pytest.mark.parametrize("given", [True, False])
def test_the_sentence_comes_without_a_file_only(given, fake_summary, tmp_path, capsys):
    source = [str(tmp_path / "in.smi")] if given else []
    (tmp_path / "in.smi").write_text("O\n")
    assert main(["generate", *source, "--out", str(fake_summary)]) == 0
    assert ("give a file of SMILES: " in capsys.readouterr().out) == (not given)


@pytest.fixture
def fake_summary(finished, monkeypatch):
    """The folder of a finished run, in place of a computation."""
    folder, summary = finished
    monkeypatch.setattr("qm1b.run.generate.generate", lambda run, display: summary)
    return folder
