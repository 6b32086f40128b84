"""Stereo and torn bonds of a run: in files of every kind, resumed, of earlier versions."""

import shutil

import pyarrow.parquet as pq
import pytest
from fake_runs import MANY, fake_run, seal_again, settings
from optional_columns import check_repaired, check_resumed_with_the_same_choice_only

from qm1b import load
from qm1b.cli import main
from qm1b.commands.generate import Generate, run_settings
from qm1b.convert.export import export
from qm1b.convert.importing import import_file
from qm1b.convert.merge import merge
from qm1b.errors import UserError
from qm1b.folder import same, shards
from qm1b.folder.manifest.work_units import Share
from qm1b.report.card.facts import Statements, gather
from qm1b.report.card.text import card
from qm1b.report.info import describe
from qm1b.rows import dropped
from qm1b.run.generate import Run, generate

LINES = "CC(F)Cl\nCCO\nO=CCC1OC2COC12\nC[C@H](F)Cl\n"
NEW = ("isomer_smiles", "torn")
BY_HAND = """{n}
smiles={smiles}
C -0.96 -0.77 -0.14
C 0.10 0.30 -0.12
F 0.10 0.92 1.11
Cl 1.72 -0.43 -0.33
H -0.83 -1.43 -1.01
H -1.95 -0.31 -0.21
H -0.90 -1.37 0.77
H {x} 1.03 -0.92
"""


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """The folder of a run with large steps, so that some rows are torn."""
    folder = tmp_path_factory.mktemp("moved")
    return fake_run(folder, LINES, conformers=4, rattle_angstrom=0.2, seed=2)[0]


def of_version_7(folder):
    """Make a run one of the version before these columns."""

    def change(file):
        for name in NEW:
            del file[f"rows/{name}"]
        file.attrs["schema_version"] = 7

    for path in shards.shards(folder):
        seal_again(path, change)
    return folder


def values(path, converged=False):
    return [
        tuple(row[name] for name in NEW) for row in load(path) if row["converged"] or not converged
    ]


def test_a_row_has_its_own_isomer_and_says_if_it_is_torn(moved):
    rows = list(load(moved))
    assert {row["isomer_smiles"] for row in rows if row["smiles"] == "CCO"} == {"CCO"}
    halogens = {row["isomer_smiles"] for row in rows if row["smiles"] == "CC(F)Cl"}
    assert halogens == {"C[C@H](F)Cl", "C[C@@H](F)Cl"}
    assert 0 < sum(row["torn"] for row in rows) < len(rows)


def test_files_of_all_kinds_keep_both(moved, tmp_path):
    good = values(moved, converged=True)
    for name in ("a.parquet", "a.extxyz"):
        export(moved, tmp_path / name)
        assert values(tmp_path / name) == good
        export(moved, tmp_path / f"all-{name}", everything=True)
        import_file(tmp_path / f"all-{name}", tmp_path / f"back-{name}")
        assert same.differences(moved, tmp_path / f"back-{name}") == []
    table = pq.read_table(tmp_path / "a.parquet", columns=[*NEW], filters=[("torn", "=", False)])
    assert 0 < len(table) == sum(not torn for _, torn in good) < len(good)


def test_torn_rows_are_counted(moved, capsys):
    torn = sum(torn for _, torn in values(moved))
    assert f"torn         {torn}\n" in describe(moved)
    assert f"\n{torn} rows are `torn`" in card(gather(moved), Statements("mine"), [])
    assert main(["stats", str(moved)]) == 0
    assert f"torn: True {torn}\n" in capsys.readouterr().out
    assert main(["stats", str(moved), "--json"]) == 0


def test_a_run_of_version_7_is_read_resumed_exported_and_described(moved, tmp_path):
    out = of_version_7(shutil.copytree(moved, tmp_path / "out-2"))
    assert set(values(out)) == {("", False)}
    assert "torn" not in describe(out)
    export(out, tmp_path / "a.parquet", everything=True)
    import_file(tmp_path / "a.parquet", tmp_path / "back")
    assert values(tmp_path / "back") == values(out)
    shards.shards(out)[0].unlink()
    (tmp_path / "input.smi").write_text(LINES)
    fake_run(tmp_path, LINES, conformers=4, rattle_angstrom=0.2, seed=2)
    assert values(out)[:8] == values(moved)[:8]  # the first unit has them now
    assert set(values(out)[8:]) == {("", False)}


def test_parts_of_version_7_are_merged(tmp_path):
    parts = []
    for i in range(2):
        (tmp_path / str(i)).mkdir()
        parts.append(of_version_7(fake_run(tmp_path / str(i), MANY, share=Share(i, 2))[0]))
    merge(parts, tmp_path / "merged")
    assert set(values(tmp_path / "merged")) == {("", False)}


def test_one_stereoisomer_is_a_setting_of_the_run(tmp_path):
    (tmp_path / "one").mkdir()
    text = f"{LINES}{MANY}"
    out, _ = fake_run(tmp_path / "one", text, conformers=4, one_stereoisomer=True)
    isomers = {}
    for row in load(out):
        isomers.setdefault(row["smiles"], set()).add(row["isomer_smiles"])
    assert all(len(each) == 1 for each in isomers.values())
    assert "All conformers of a molecule are of one" in card(gather(out), Statements("mine"), [])


def test_it_is_resumed_repaired_and_not_mixed(tmp_path):
    for name in ("run", "resumed", "repaired"):
        (tmp_path / name).mkdir()
    out, _ = fake_run(tmp_path / "run", MANY, one_stereoisomer=True)
    chosen = {"one_stereoisomer": True}
    check_resumed_with_the_same_choice_only(out, tmp_path / "resumed", "one_stereoisomer", **chosen)
    check_repaired(out, tmp_path / "repaired", **chosen)


def test_impossible_stereo_is_a_dropped_line(tmp_path):
    out, _ = fake_run(tmp_path, "C1C[C@H]2C[C@H]1CC2\nC1C[C@H]2C[C@@H]1CC2\n")
    (drop,) = dropped.read(out / shards.DROPPED)
    assert (drop.line, drop.reason) == (1, "embed_failed")
    assert drop.detail.startswith("impossible stereo: atoms 2 and 5 of the SMILES (from 0) have")


def test_a_run_without_it_is_one_of_before():
    assert "one_stereoisomer" not in settings().to_dict()
    assert settings(one_stereoisomer=True).fingerprint != settings().fingerprint


@pytest.mark.parametrize("name", ["a.sdf", "a.xyz"])
def test_geometries_have_their_stereo(tmp_path, name):
    (tmp_path / name).write_text("\n")
    command = Generate(
        source=tmp_path / name, one_stereoisomer=True, input_format=name.split(".")[1]
    )
    with pytest.raises(UserError, match="--one-stereoisomer is for SMILES: geometries of"):
        run_settings(command)


def test_the_positions_of_a_frame_count_and_not_its_smiles(tmp_path):
    frames = [("C[C@H](F)Cl", 0.03), ("C[C@@H](F)Cl", 0.03), ("CC(F)Cl", 0.03), ("CC(F)Cl", 4.0)]
    texts = [BY_HAND.format(n=8, smiles=smiles, x=x) for smiles, x in frames]
    texts.append(BY_HAND.format(n=8, smiles="", x=0.03).replace("smiles=", "no smiles"))
    texts.append(BY_HAND.format(n=8, smiles="", x=4.0).replace("smiles=", "no smiles"))
    path = tmp_path / "a.xyz"
    path.write_text("".join(texts))
    generate(Run(path, tmp_path / "out", settings(conformers=1), 1, "fake_engine:Solver"))
    rows = values(tmp_path / "out")
    (isomer, _), *_ = rows
    assert isomer in ("C[C@H](F)Cl", "C[C@@H](F)Cl")
    assert rows[:3] == [(isomer, False)] * 3
    assert rows[3:] == [("", True), ("", False), ("", True)]
