"""Ids and places of atoms of a run: in files of every kind, resumed, of earlier versions."""

import json
import shutil

import ase.io
import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from fake_runs import fake_run

from qm1b import inputs, load
from qm1b.audit.invariants import Invariants
from qm1b.cli import main
from qm1b.commands.generate import Generate, run_settings
from qm1b.convert import digests
from qm1b.convert.digests import DropDigest, RowDigest
from qm1b.convert.export import export
from qm1b.convert.importing import import_file
from qm1b.errors import UserError
from qm1b.folder import checksum, same, shards
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats import extxyz
from qm1b.rows import dropped

LINES = "OCC ethanol\nC\nCCO \x1b[2Jagain\nN\t7\t1\n[CH3] radical\nCCl\tF\n"
IDS = ["ethanol", "ethanol", "", "", "7", "7", "F", "F"]
NEW = ("id", "input_atom")


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """The folder of a run of molecules with ids."""
    return fake_run(tmp_path_factory.mktemp("named"), LINES)[0]


def of_version_5(folder):
    """Make a run one of the version before ids."""
    for path in shards.shards(folder):
        path.write_bytes(path.read_bytes()[checksum.BLOCK :])
        with h5py.File(path, "r+") as file:
            for name in (*(f"rows/{each}" for each in NEW), "dropped/id"):
                del file[name]
            file.attrs["schema_version"] = 5
        path.write_bytes(checksum.sealed(b"\0" * checksum.BLOCK + path.read_bytes()))
    csv = folder / shards.DROPPED
    drops = list(dropped.read(csv))
    rows = [f"{d.line},{d.smiles},{d.reason},{d.detail}\r\n" for d in drops]
    csv.write_bytes("".join(["line,smiles,reason,detail\r\n", *rows]).encode())
    return folder


def test_a_row_has_the_id_of_its_line_and_a_duplicate_its_own(named):
    assert [row["id"] for row in load(named)] == IDS
    drops = {drop.line: (drop.reason, drop.id) for drop in dropped.read(named / shards.DROPPED)}
    assert drops == {3: ("duplicate", "[2Jagain"), 5: ("radical", "radical")}
    assert load(named)[0]["input_atom"].tolist() == [2, 1, 0, *[-1] * 6]
    assert load(named, fields=["id"])[4] == {"id": "7"}


def test_files_of_all_kinds_keep_them(named, tmp_path):
    for name in ("a.parquet", "a.extxyz"):
        export(named, tmp_path / name)
        found = [(row["id"], row["input_atom"].tolist()) for row in load(tmp_path / name)]
        wanted = [(row["id"], row["input_atom"].tolist()) for row in load(named)]
        good = [row["converged"] for row in load(named)]
        assert found == [w for w, is_good in zip(wanted, good, strict=True) if is_good]
        export(named, tmp_path / f"all-{name}", everything=True)
        import_file(tmp_path / f"all-{name}", tmp_path / f"back-{name}")
        assert same.differences(named, tmp_path / f"back-{name}") == []
    frames = ase.io.read(tmp_path / "a.extxyz", ":")
    named_frames = [f for f in frames if f.info["config_type"] != "IsolatedAtom"]
    assert [f.info["id"] for f in named_frames] == IDS[:6]
    assert named_frames[0].arrays["input_atom"].dtype.kind == "i"
    column = pq.read_table(tmp_path / "a.parquet")["id"]
    assert column.to_pylist() == IDS[:6]


def test_an_exported_file_is_an_input_with_the_same_ids(named, tmp_path):
    export(named, tmp_path / "a.extxyz")
    code = main(["head", str(tmp_path / "a.extxyz"), "-n", "1"])
    assert code == 0
    path = tmp_path / "a.extxyz"
    records = inputs.read(path, run_settings(Generate(source=path)))
    assert [record.id for record in records] == IDS[:6]


def test_ids_that_a_reader_may_take_for_something_else(named, tmp_path):
    ids = ['my "ethanol"', "a\\b", "{x}", "[1]", "a=b", "smiles=O", "007", "T", "nan", "_JSON 1"]
    ids += ["'q'", "1 2 3", "", "x,y", "\\", '\\"', "\u00e9 \u4e59"]
    batch = next(ShardFolder(named).batches()).take(np.zeros(len(ids), int))
    batch.columns["id"] = np.array(ids, dtype=object)
    path = tmp_path / "a.extxyz"
    with open(path, "wb") as stream:
        extxyz.write(stream, iter([batch]), packed=False)
    assert [row["id"] for row in load(path)] == ids
    records = inputs.read(path, run_settings(Generate(source=path)))
    assert [record.id for record in records] == ids


def test_head_shows_ids_if_there_are_any(named, finished, tmp_path, capsys):
    assert main(["head", str(named), "-n", "2"]) == 0
    header, first, _ = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["line", "id", "smiles"]
    assert first.split()[1] == "ethanol"
    out, _ = fake_run(tmp_path, "C\nCC\n")
    assert main(["head", str(out)]) == 0
    assert capsys.readouterr().out.split()[:2] == ["line", "smiles"]


def test_a_run_of_version_5_is_read_and_resumed(named, tmp_path):
    out = of_version_5(shutil.copytree(named, tmp_path / "out-2"))
    rows = list(load(out))
    assert {row["id"] for row in rows} == {""}
    assert rows[0]["input_atom"].tolist() == [-1] * 9
    assert {drop.id for drop in dropped.read(out / shards.DROPPED)} == {""}
    shards.shards(out)[0].unlink()
    (tmp_path / "input.smi").write_text(LINES)
    fake_run(tmp_path, LINES)  # computes the first unit again, which has ids then
    assert [row["id"] for row in load(out)] == ["ethanol"] * 2 + [""] * 2 + ["7"] * 2 + [""] * 2


def as_version_5(folder, path):
    """Make an export of everything one of version 5, which had no such columns."""
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    source = ShardFolder(folder)
    rows, drops = RowDigest(source.metadata["settings"]), DropDigest()
    rows.without(NEW)
    for number in range(len(source.shards)):
        batch, lines = source.unit(number)
        rows.add(batch)
        drops.add(lines)
    told = digests.entry(source.metadata, drops, rows)
    metadata[b"digests"] = json.dumps(told).encode()
    pq.write_table(table.drop(NEW).replace_schema_metadata(metadata), path)
    shutil.copy(folder / shards.DROPPED, dropped.beside(path))


def test_an_export_of_version_5_is_imported_and_its_damage_noticed(named, tmp_path):
    folder = of_version_5(shutil.copytree(named, tmp_path / "out-2"))
    path = tmp_path / "a.parquet"
    export(folder, path, everything=True)
    whole = pq.read_table(path)
    as_version_5(folder, path)
    import_file(path, tmp_path / "back")
    assert same.differences(folder, tmp_path / "back") == []
    metadata = pq.read_schema(path).metadata
    for lacking in ("seed", "energy_hartree"):
        table = whole.drop([*NEW, lacking]).replace_schema_metadata(metadata)
        pq.write_table(table, path)
        with pytest.raises(
            UserError, match=r"lacks|does not hold.*import the file with the version"
        ):
            import_file(path, tmp_path / lacking)
    pq.write_table(whole.drop(["id"]), path)  # of this version, and without a column
    with pytest.raises(UserError, match="the digest of its rows"):
        import_file(path, tmp_path / "cut")


def test_verify_sees_an_atom_of_the_input_twice(named):
    source = ShardFolder(named)
    batch, _ = source.unit(0)
    for place, count in ((2, 0), (1, 1)):
        batch.columns["input_atom"][0] = place
        checks = Invariants(source.manifest.fingerprint, source.free_atom_energies)
        checks.add(source.shards[0], batch)
        assert checks.violations["atom_of_input_twice"].count == count
    assert np.sum(batch["input_atom"] >= 0) > 3
