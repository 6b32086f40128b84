"""The folder for a hub: parts, sample, configurations in the card, Croissant of every file."""

import hashlib
import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from fake_runs import fake_run

from qm1b.cli import main
from qm1b.convert.export import export, is_good
from qm1b.convert.hub import SAMPLE_ROWS, write_hub
from qm1b.errors import UserError
from qm1b.folder.shard_folder import ShardFolder

pytestmark = pytest.mark.usefixtures("blank_pictures")


def front_matter(folder):
    return yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])


def rows_of(folder, pattern):
    return [row for path in sorted(folder.glob(pattern)) for row in pq.read_table(path).to_pylist()]


def test_all_rows_in_parts_and_a_sample(whole, tmp_path):
    out = tmp_path / "hub"
    source = ShardFolder(whole)
    batches = (batch.take(is_good(batch).nonzero()[0]) for batch in source.batches())
    write_hub(out, batches, source, rows_per_part=10)
    export(whole, tmp_path / "one.parquet")
    expected = pq.read_table(tmp_path / "one.parquet").to_pylist()
    parts = sorted(path.name for path in (out / "data").iterdir())
    assert len(parts) > 2
    assert parts[0] == "part-00000.parquet"
    assert rows_of(out, "data/*.parquet") == expected
    assert all(pq.read_metadata(p).num_rows >= 10 for p in sorted((out / "data").iterdir())[:-1])
    assert rows_of(out, "sample/*.parquet") == expected  # of fewer rows than the sample may have


def test_the_configurations_name_the_files(with_forces, tmp_path):
    out = tmp_path / "hub"
    done = export(with_forces, out, kind="hub")
    found = {config["config_name"]: config for config in front_matter(out)["configs"]}
    assert found["default"]["default"] is True
    assert [config["config_name"] for config in found.values() if "default" in config] == [
        "default"
    ]
    for name in ("default", "sample"):
        assert len(rows_of(out, found[name]["data_files"])) == done.rows == 10
    assert {path.name for path in done.beside} >= {"README.md", "croissant.json", "overview.png"}


def test_croissant_describes_every_file(with_forces, tmp_path):
    out = tmp_path / "hub"
    export(with_forces, out, kind="hub")
    said = json.loads((out / "croissant.json").read_text())
    files = {entry["@id"]: entry for entry in said["distribution"]}
    assert set(files) == {p.relative_to(out).as_posix() for p in out.glob("*/*.parquet")}
    for name, entry in files.items():
        assert entry["sha256"] == hashlib.sha256((out / name).read_bytes()).hexdigest()
    tables = {table["name"]: table for table in said["recordSet"]}
    assert set(tables) == {"sample", "part-00000"}
    ids = [entry["@id"] for table in tables.values() for entry in table["field"]]
    assert len(ids) == len(set(ids))
    of = {f["source"]["fileObject"]["@id"] for f in tables["part-00000"]["field"]}
    assert of == {"data/part-00000.parquet"}


def test_the_sample_is_a_share_of_the_lines(whole, tmp_path, monkeypatch):
    monkeypatch.setattr("qm1b.convert.hub.SAMPLE_ROWS", 12)
    export(whole, tmp_path / "hub", kind="hub")
    every = rows_of(tmp_path / "hub", "data/*.parquet")
    sample = rows_of(tmp_path / "hub", "sample/*.parquet")
    assert 0 < len(sample) < len(every)
    lines = {row["line"] for row in sample}
    assert sample == [row for row in every if row["line"] in lines]


def test_the_largest_sample_is_below_100_megabytes():
    """Of 255 atoms with symbol, number, position, charge and force, before compression."""
    assert SAMPLE_ROWS * 255 * (2 + 1 + 12 + 4 + 12) < 100e6


def test_a_card_with_statements_keeps_the_configurations(with_forces, tmp_path):
    out = tmp_path / "hub"
    export(with_forces, out, kind="hub")
    configs = front_matter(out)["configs"]
    assert main(["card", str(with_forces), "--out", str(out), "--license", "CC0-1.0"]) == 0
    assert front_matter(out)["license"] == "cc0-1.0"
    assert front_matter(out)["configs"] == configs
    assert len(json.loads((out / "croissant.json").read_text())["distribution"]) == 2


def test_a_folder_that_is_not_empty(finished, tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UserError, match="is not an empty folder"):
        export(finished[0], tmp_path, kind="hub")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt"]


@pytest.mark.parametrize(
    "words", ["export {run} {out} --format hub", "split {run} --format hub --out {out}"]
)
def test_after_an_error_the_same_command_goes_on(words, finished, tmp_path, monkeypatch, capsys):
    """The disk is full when the last file is written; later there is room."""
    out = tmp_path / "hub"
    command = words.format(run=finished[0], out=out).split()
    last = "README.md" if command[0] == "export" else "split.json"
    real = os.replace

    def full(source, target):
        if Path(target).name == last:
            raise OSError(28, "No space left on device")
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert main(command) == 2
    (out / "data" / "part-09999.parquet").touch()
    assert main(command) == 0
    assert (out / last).exists()
    assert not (out / "data" / "part-09999.parquet").exists()
    assert not [path for path in out.iterdir() if path.name.startswith(".")]
    assert main(command) == 2
    assert "is not an empty folder" in capsys.readouterr().err


def test_a_run_without_good_rows(tmp_path):
    folder, _ = fake_run(tmp_path, "CCl\n")
    with pytest.raises(UserError, match="no row that converged"):
        export(folder, tmp_path / "hub", kind="hub")
    assert not (tmp_path / "hub" / "README.md").exists()


def test_the_card_describes_the_columns_of_the_files(with_forces, tmp_path):
    hub = tmp_path / "hub"
    export(with_forces, hub, kind="hub")
    text = (hub / "README.md").read_text()
    for column in pq.read_schema(hub / "sample/sample.parquet"):
        unit = column.metadata[b"unit"].decode()
        assert f"| `{column.name}` | {unit} |" in text
    assert "| `energy` | hartree |" not in text
    assert "HDF5" not in text.split("## Level of theory")[0]
