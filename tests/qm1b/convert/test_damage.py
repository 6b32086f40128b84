"""Damaged exports: one sentence, or the rows that were exported; never others."""

import json
import random
import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from qm1b.cli import main
from qm1b.convert.digests import DIGESTS, RowDigest
from qm1b.convert.export import export
from qm1b.convert.importing import import_file
from qm1b.errors import UserError
from qm1b.folder import same
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats import extxyz
from qm1b.rows.batch import concatenate

TRIALS = 60


def flipped(path, places, seed):
    """A file with one to three bits changed."""
    draw, data = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(draw.choice([1, 2, 3])):
        data[draw.choice(places)] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def what_is_said(use):
    """The sentence that refuses something, or nothing."""
    try:
        use()
    except UserError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("trials", [TRIALS // 5, pytest.param(TRIALS, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["a.parquet", "a.extxyz", "a.extxyz.gz"])
def test_flipped_bits_are_refused_or_change_nothing(finished, tmp_path, name, trials):
    path, out = tmp_path / name, tmp_path / "back"
    files = [path, *export(finished[0], path, everything=True).beside]
    whole = {file: file.read_bytes() for file in files}
    everywhere = {file: [range(len(data))] for file, data in whole.items()}
    if name.endswith(".parquet"):
        data = whole[path]
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        arrow = pq.read_metadata(path).metadata[b"ARROW:schema"]
        start = data.index(arrow[:100])  # its base64 notices nearly everything
        end = start + len(arrow)
        everywhere[path] = [range(footer), [*range(footer, start), *range(end, len(data))]]
    refused = 0
    for trial in range(trials):
        file = files[trial % len(files)]
        parts = everywhere[file]
        flipped(file, parts[trial // len(files) % len(parts)], trial)
        said = what_is_said(lambda: import_file(path, out))
        if said:
            refused += 1
            assert "\n" not in said
            assert not out.exists()
        else:
            assert same.differences(finished[0], out) == [], trial
            shutil.rmtree(out)
        file.write_bytes(whole[file])
    assert refused > trials / 2


def test_a_damaged_name_of_the_digests_is_no_file_of_an_earlier_version(finished, tmp_path):
    path = tmp_path / "a.extxyz"
    beside = next(p for p in export(finished[0], path, everything=True).beside if "json" in p.name)
    whole = beside.read_text()
    beside.write_text(whole.replace('"digests"', '"digeqts"'))
    with pytest.raises(UserError, match="its digests"):
        import_file(path, tmp_path / "out")
    values = json.loads(whole)
    del values["digests"]  # as an earlier version wrote it
    beside.write_text(json.dumps(values))
    import_file(path, tmp_path / "out")


def test_damaged_pages_are_noticed_by_every_reader(finished, tmp_path):
    """Without --all too, and where the rows are only shown."""
    path = tmp_path / "a.parquet"
    export(finished[0], path)
    column = pq.read_metadata(path).row_group(0).column(3)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + column.total_compressed_size - 20] ^= 1
    path.write_bytes(data)
    assert column.path_in_schema == "energy"
    for command in ("head", "stats"):
        assert main([command, str(path)]) == 2


def test_a_file_that_was_written_again_in_other_pieces_keeps_its_digests(finished, tmp_path):
    path = tmp_path / "a.parquet"
    export(finished[0], path, everything=True)
    table = pq.read_table(path)
    pq.write_table(table, path, row_group_size=3, compression="gzip", use_dictionary=False)
    assert import_file(path, tmp_path / "back").warning == ""
    assert same.differences(finished[0], tmp_path / "back") == []
    changed = table.set_column(
        table.column_names.index("cycles"), "cycles", [[*table["cycles"].to_pylist()[:-1], 8]]
    )
    pq.write_table(changed.cast(table.schema), path)
    with pytest.raises(UserError, match="the digest of its rows is"):
        import_file(path, tmp_path / "again")


def test_the_digest_of_rows_does_not_depend_on_batches(finished):
    batches = list(ShardFolder(finished[0]).batches())
    one, many, other = (RowDigest({}) for _ in range(3))
    one.add(concatenate(batches))
    for batch in batches:
        many.add(batch)
    for batch in batches[1:]:
        other.add(batch)
    assert one.hexdigest() == many.hexdigest() != other.hexdigest()


@pytest.mark.parametrize("name", ["a.parquet", "a.extxyz"])
def test_a_file_of_an_earlier_version_is_imported_with_a_warning(finished, tmp_path, capsys, name):
    path = tmp_path / name
    export(finished[0], path, everything=True)
    if name == "a.parquet":
        table = pq.read_table(path)
        metadata = {k: v for k, v in table.schema.metadata.items() if k != DIGESTS.encode()}
        pq.write_table(table.replace_schema_metadata(metadata), path)
    else:
        beside = extxyz.manifest_path(path)
        values = json.loads(beside.read_text())
        del values[DIGESTS]
        beside.write_text(json.dumps(values))
    assert main(["import", str(path), "--out", str(tmp_path / "back")]) == 0
    said = capsys.readouterr().err
    assert said.startswith("warning: ")
    assert "carries no digests" in said
    assert said.count("\n") == 1
    assert same.differences(finished[0], tmp_path / "back") == []


@pytest.mark.parametrize("part", ["settings", "counts", "runs", "input"])
def test_an_edited_manifest_is_refused(finished, tmp_path, part):
    path = tmp_path / "a.extxyz"
    export(finished[0], path, everything=True)
    beside = extxyz.manifest_path(path)
    values = json.loads(beside.read_text())
    plausible = {"basis": "def2-svp"} if part == "settings" else {"lines": 14, "name": "b.smi"}
    for new in (values[part] | plausible if part in ("settings", "input") else [], None, 3):
        beside.write_text(json.dumps(values | {part: new}))
        with pytest.raises(UserError, match=r"^[^\n]*(digest of its manifest|damaged)[^\n]*$"):
            import_file(path, tmp_path / "back")
    with suppress(FileNotFoundError):
        assert not list(Path(tmp_path / "back").iterdir())


def test_an_export_to_a_link_is_written_through(finished, tmp_path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "a.parquet"
    link.symlink_to("disk/b.parquet")
    for _ in range(2):
        assert export(finished[0], link).rows == 8
        assert link.is_symlink()
        assert pq.read_metadata(tmp_path / "disk" / "b.parquet").num_rows == 8
