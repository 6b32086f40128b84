"""There and back: an export with everything becomes the folder that it came from, bit for bit."""

import errno
import gzip
import json
import os
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import ase.io
import h5py
import numpy as np
import pytest
from fake_runs import fake_run

import qm1b
from qm1b.convert.export import export
from qm1b.convert.importing import import_file
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.manifest.manifest import Manifest
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats import extxyz
from qm1b.formats.load import load
from qm1b.rows import dropped
from qm1b.rows.batch import Batch, row_of
from qm1b.rows.schema import fields_of
from qm1b.storage import arrival
from qm1b.storage.arrival import arriving


def contents(folder):
    """Every dataset and attribute of every shard, and the other files."""
    values = {}
    for path in shards.shards(folder):
        with h5py.File(path) as file:
            for name, value in file.attrs.items():
                values[path.name, name] = value
            for group in file.values():
                for name, data in group.items():
                    values[path.name, group.name, name] = np.asarray(data).tobytes()
                    if h5py.check_string_dtype(data.dtype):
                        values[path.name, group.name, name] = data.asstr()[:].tolist()
    for name in (shards.MANIFEST, shards.DROPPED):
        values[name] = (folder / name).read_bytes()
    return values


def plain(attributes):
    return {name: getattr(v, "item", lambda v=v: v)() for name, v in attributes.items()}


def rows_of(folder, unit):
    """The rows of a shard, as they were written."""
    return list(map(row_of, shards.read_shard(shards.shard_path(folder, unit)).rows()))


@pytest.mark.parametrize("name", ["a.parquet", "a.extxyz", "a.extxyz.gz"])
def test_round_trip(finished, tmp_path, name):
    done = export(finished[0], tmp_path / name, everything=True)
    back = import_file(tmp_path / name, tmp_path / "back")
    assert (back.rows, back.drops, back.shards) == (14, 7, 4)
    assert all(path.exists() for path in done.beside)
    ours, theirs = contents(finished[0]), contents(tmp_path / "back")
    assert ours.keys() == theirs.keys()
    for key, value in ours.items():
        assert np.array_equal(value, theirs[key]), key


@pytest.mark.parametrize("name", ["a.parquet", "a.extxyz"])
def test_shards_of_other_machines_keep_what_they_say_of_themselves(finished, tmp_path, name):
    mixed = shutil.copytree(finished[0], tmp_path / "mixed")
    for unit, version in ((0, "1.0"), (2, "1.0"), (3, "2.0")):
        attributes = plain(shards.read_attributes(shards.shard_path(mixed, unit)))
        versions = json.loads(attributes["versions"]) | {"jax": version}
        rows = rows_of(mixed, unit)
        drops = shards.read_drops(shards.shard_path(mixed, unit))
        attributes["versions"] = json.dumps(versions)
        shards.write_shard(mixed, unit, rows, drops, attributes)
    export(mixed, tmp_path / name, everything=True)
    assert len(load(tmp_path / name).metadata["differing_units"]) == 2
    import_file(tmp_path / name, tmp_path / "back")
    ours, theirs = contents(mixed), contents(tmp_path / "back")
    assert json.loads(theirs["shard-00002.h5", "versions"])["jax"] == "1.0"
    assert ours.keys() == theirs.keys()
    for key, value in ours.items():
        assert np.array_equal(value, theirs[key]), key


def test_what_does_not_hold_everything_is_refused(finished, tmp_path):
    out = tmp_path / "back"
    lean = tmp_path / "lean.parquet"
    export(finished[0], lean)
    with pytest.raises(UserError, match=r"lacks the exact column|without its run's manifest"):
        import_file(lean, out)
    lean = tmp_path / "lean.extxyz"
    export(finished[0], lean)
    with pytest.raises(UserError, match="without its run's manifest"):
        import_file(lean, out)
    full = tmp_path / "full.parquet"
    export(finished[0], full, everything=True)
    dropped.beside(full).rename(tmp_path / "elsewhere.csv")
    with pytest.raises(UserError, match="is missing"):
        import_file(full, out)
    (tmp_path / "elsewhere.csv").rename(dropped.beside(full))
    assert not out.exists()
    with pytest.raises(UserError, match="is not an empty folder"):
        import_file(full, finished[0])
    with pytest.raises(UserError, match="a folder already"):
        import_file(finished[0], out)


def exported(folder, path):
    export(folder, path, everything=True)
    return path


def without_last_frames(path, n):
    """The file without its last frames; the others stay whole."""
    text = path.read_text()
    starts = [match.start() for match in re.finditer(r"^\d+\n", text, flags=re.MULTILINE)]
    path.write_text(text[: starts[-n]])


@pytest.mark.parametrize("there", [True, False])
def test_a_shortened_export_is_refused_and_leaves_nothing(finished, tmp_path, there):
    path, out = exported(finished[0], tmp_path / "a.extxyz"), tmp_path / "back"
    if there:
        out.mkdir()
    without_last_frames(path, 1)  # a conformer: its line has another row
    with pytest.raises(UserError, match=r"\(rows: 13 instead of 14\).*export --all"):
        import_file(path, out)
    assert not (list(out.iterdir()) if there else out.exists())


def test_lines_lost_from_a_file_are_noticed(finished, tmp_path):
    path, out = exported(finished[0], tmp_path / "a.extxyz"), tmp_path / "back"
    drops = dropped.beside(path)
    lines = drops.read_text().splitlines(keepends=True)
    drops.write_text("".join(lines[:-1]))
    with pytest.raises(UserError, match=r"lines of unit \d: \d instead of \d"):
        import_file(path, out)
    drops.write_text("".join([*lines, lines[-1]]))  # more of them are as wrong
    with pytest.raises(UserError, match=r"lines dropped as \w+: \d instead of \d"):
        import_file(path, out)
    assert not out.exists()


def test_the_export_of_a_killed_run_may_hold_more_than_its_manifest_counts(finished, tmp_path):
    folder = shutil.copytree(finished[0], tmp_path / "killed")
    behind = shards.read_metadata(folder)
    behind |= {"status": "running"}
    behind["counts"] |= {"units": 3, "rows": 9, "dropped": {}}
    shards.write_manifest(folder, Manifest.from_dict(behind))
    path = exported(folder, tmp_path / "a.extxyz")
    assert import_file(path, tmp_path / "back").rows == 14
    assert shards.read_metadata(tmp_path / "back") == behind
    behind["counts"] |= {"rows": 15}
    extxyz.manifest_path(path).write_text(json.dumps(behind))
    with pytest.raises(UserError, match="rows: 14 instead of 15"):
        import_file(path, tmp_path / "again")


def test_an_unfinished_run_comes_back_as_far_as_it_came(finished, tmp_path):
    folder = shutil.copytree(finished[0], tmp_path / "stopped")
    shards.shards(folder)[-1].unlink()
    rows = [row for unit in range(3) for row in rows_of(folder, unit)]
    record = shards.read_manifest(folder)
    counts = replace(record.counts, units=3, rows=len(rows), drops=Counter())
    shards.write_manifest(folder, replace(record, status="interrupted", counts=counts))
    done = import_file(exported(folder, tmp_path / "a.parquet"), tmp_path / "back")
    assert (done.rows, done.shards) == (len(rows), 3)


def test_a_damaged_manifest_beside_a_file_is_named(finished, tmp_path):
    path = exported(finished[0], tmp_path / "a.extxyz")
    for text in ("{", "[]", ""):
        extxyz.manifest_path(path).write_text(text)
        with pytest.raises(UserError, match=r"a\.extxyz\.manifest\.json is damaged .*delete it"):
            qm1b.load(path)


def test_texts_that_a_reader_may_take_for_something_else(finished, tmp_path):
    """Hydrogen fluoride is F, which ASE reads as a boolean; double bonds have backslashes."""
    texts = ["F", r"F/C=C\F", "", "nan", "T F", 'a "b", {c} = [d]', "_JSON 1", "two\n\u00e9"]
    batch = next(ShardFolder(finished[0]).batches()).take(np.arange(len(texts)))
    batch.columns["smiles"] = np.array(texts, dtype=object)
    path = tmp_path / "a.extxyz"
    with open(path, "wb") as stream:
        extxyz.write(stream, iter([batch]), packed=False)
    assert [row["smiles"] for row in qm1b.load(path)] == texts
    frames = ase.io.read(path, ":")
    assert [atoms.info["smiles"] for atoms in frames] == texts
    assert [atoms.info["conformer"] for atoms in frames] == batch["conformer"].tolist()


def test_numbers_of_every_size_survive(finished, tmp_path):
    """Positions go through Angstrom and decimal digits and come back to the last bit."""
    random = np.random.default_rng(0)
    batch = next(ShardFolder(finished[0]).batches())
    bits = random.integers(0, 0x7F000000, batch["positions"].shape, np.uint32)
    signs = random.integers(0, 2, bits.shape, np.uint32) << 31
    batch.columns["positions"] = (bits | signs).view(np.float32)
    batch.columns["energy"] = random.integers(0, 2**62, len(batch)).view(np.float64)
    path = tmp_path / "a.extxyz"
    with open(path, "wb") as stream:
        extxyz.write(stream, iter([batch]), packed=False)
    (back,) = qm1b.load(path).batches()
    for f in fields_of({}):
        np.testing.assert_array_equal(back[f.name], batch[f.name], err_msg=f.name)
    assert isinstance(back, Batch)


def test_molecules_of_ten_atoms_and_more(tmp_path):
    out, _ = fake_run(tmp_path, "CCCCC\nO\n")
    path = tmp_path / "a.extxyz.gz"
    export(out, path, everything=True)
    import_file(path, tmp_path / "back")
    ours, theirs = contents(out), contents(tmp_path / "back")
    assert all(np.array_equal(value, theirs[key]) for key, value in ours.items())
    assert [len(row["numbers"]) for row in qm1b.load(path)] == [17, 17, 3, 3]
    whole = gzip.decompress(path.read_bytes())
    (tmp_path / "cut.extxyz").write_bytes(whole[: len(whole) * 9 // 10])
    with pytest.raises(UserError, match="is damaged"):
        list(qm1b.load(tmp_path / "cut.extxyz"))


@pytest.mark.parametrize("moves", range(6))
@pytest.mark.parametrize("there", [True, False])
def test_a_disk_that_fails_at_the_end_leaves_nothing(finished, tmp_path, moves, monkeypatch, there):
    path, out, left = exported(finished[0], tmp_path / "a.parquet"), tmp_path / "back", [moves]
    if there:
        out.mkdir()
    replace_ = Path.replace

    def fails(source, target):
        if not left[0]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        left[0] -= 1
        return replace_(source, target)

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(UserError, match=r"cannot write .*back: Input/output error; make room"):
        import_file(path, out)
    assert not (list(out.iterdir()) if there else out.exists())
    monkeypatch.undo()
    assert import_file(path, out).shards == 4


def test_two_imports_into_one_folder(finished, tmp_path):
    path, out = exported(finished[0], tmp_path / "a.parquet"), tmp_path / "back"
    with arriving(out, "last") as folder:
        (folder / "last").touch()
        with pytest.raises(UserError, match=rf"in use by process {os.getpid()}"):
            import_file(path, out)
    assert sorted(path.name for path in out.iterdir()) == [".lock", "last"]


@pytest.mark.parametrize("change", ["other file", "later manifest", "link"])
def test_what_is_not_of_the_killed_import_is_refused(finished, tmp_path, monkeypatch, change):
    path, out = exported(finished[0], tmp_path / "a.parquet"), tmp_path / "back"
    monkeypatch.setattr(arrival, "_remove_own", lambda *_: None)  # as after a kill
    monkeypatch.setattr(Path, "rmdir", lambda _: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        import_file(path, out)
    monkeypatch.undo()
    assert (out / shards.MANIFEST).exists()
    if change == "other file":
        (out / "notes.txt").write_text("mine")
    elif change == "later manifest":
        shards.write_manifest(out, shards.read_manifest(out))
    else:
        (out / arrival.STAGE).rmdir()
        (out / arrival.STAGE).symlink_to(finished[0])
    before = identities(out)
    with pytest.raises(UserError, match="is not an empty folder"):
        import_file(path, out)
    assert identities(out) == before


def identities(folder):
    paths = {path.name: path.lstat() for path in folder.iterdir()}
    return {name: (of.st_ino, of.st_size, of.st_mtime_ns) for name, of in paths.items()}
