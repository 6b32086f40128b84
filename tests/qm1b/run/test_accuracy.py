"""A run with --accuracy: a setting of the run, in the manifest, for `info` and for resuming."""

import json
from dataclasses import replace

import pytest
from fake_runs import fake_run

from qm1b.cli import main
from qm1b.commands.generate import Generate, run_settings
from qm1b.folder import shards
from qm1b.settings import PRESETS


def test_the_option():
    loose = run_settings(Generate(accuracy="energy"))
    assert loose.level.accuracy == "energy"
    assert run_settings(Generate()).level.accuracy == "properties"
    assert loose.fingerprint != run_settings(Generate()).fingerprint
    same = run_settings(Generate(accuracy="properties"))
    assert same.fingerprint == run_settings(Generate()).fingerprint


def test_the_manifest_says_it(tmp_path, capsys):
    level = replace(PRESETS["qm1b"], accuracy="orbitals", xc="hf")
    folder = fake_run(tmp_path, "O\nCCO\n", level=level)[0]
    settings = json.loads((folder / shards.MANIFEST).read_text())["settings"]
    assert settings["accuracy"] == "orbitals"
    assert main(["info", str(folder)]) == 0
    assert "for energies and orbitals" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            ["--forces"],
            ("--forces and --accuracy orbitals do not fit", "leave out --accuracy, or --forces"),
        ),
        (["--preset", "ani1x"], ("--preset ani1x, which has forces, and", "or give --no-forces")),
    ],
)
def test_forces_need_an_scf_that_ends_when_they_are_right(tmp_path, capsys, asked, words):
    assert main(["generate", *asked, "--accuracy", "orbitals", "--out", str(tmp_path / "no")]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words)
    assert not (tmp_path / "no").exists()
