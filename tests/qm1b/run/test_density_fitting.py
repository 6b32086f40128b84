"""A run with --jk: its column, its manifest, and what its rows are compared with."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
from fake_runs import fake_run

from qm1b import load
from qm1b.audit.picking import Picked
from qm1b.cli import main
from qm1b.commands.generate import Generate, run_settings
from qm1b.folder import shards
from qm1b.settings import PRESETS

LEVEL = replace(PRESETS["qm1b"], jk="auto", xc="hf")


def test_rows_have_the_form_that_was_used(tmp_path, capsys):
    folder = fake_run(tmp_path, "O\nCCO\n[Ne]\n", level=LEVEL)[0]
    rows = list(load(folder))
    assert {row["smiles"]: row["jk"] for row in rows} == {"O": "exact", "CCO": "ri", "[Ne]": ""}
    assert {Picked(row, 0).form for row in rows if row["smiles"] == "CCO"} == {"ri"}
    assert {Picked(row, 0).form for row in rows if row["smiles"] != "CCO"} == {"exact"}
    settings = json.loads((folder / shards.MANIFEST).read_text())["settings"]
    assert (settings["jk"], settings["jk_above_aos"]) == ("auto", 128)
    forms = [row["jk"] for row in rows if row["jk"]]
    assert main(["export", str(folder), str(tmp_path / "run.parquet")]) == 0
    assert pq.read_table(tmp_path / "run.parquet")["jk"].to_pylist() == forms
    capsys.readouterr()
    assert main(["info", str(folder)]) == 0
    assert "density fitting above 128 AOs" in " ".join(capsys.readouterr().out.split())


def test_other_runs_have_no_such_column(whole):
    assert "jk" not in load(whole)[0]
    assert "jk" not in json.loads((whole / shards.MANIFEST).read_text())["settings"]


def test_the_option():
    assert run_settings(Generate(jk="ri")).level.jk == "ri"
    assert run_settings(Generate()).level.jk == "exact"
    assert run_settings(Generate(jk="ri")).fingerprint != run_settings(Generate()).fingerprint
