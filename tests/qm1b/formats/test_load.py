"""`qm1b.load`: the same rows from a folder, Parquet and extended XYZ, none of them read whole."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import qm1b
from pyscf_ipu.base.units import HARTREE_TO_EV
from qm1b.convert.export import export
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.rows.batch import OFFSETS, Batch, concatenate
from qm1b.rows.schema import fields_of

NAMES = [f.name for f in fields_of({}) if f.name not in OFFSETS]


@pytest.fixture(scope="module")
def files(finished, tmp_path_factory):
    """The finished run as a folder and in every other format, with everything."""
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / name for name in ("a.parquet", "a.extxyz", "a.extxyz.gz")]
    for path in paths:
        export(finished[0], path, everything=True)
    return [finished[0], *paths]


def whole(path, fields=None):
    return concatenate(list(qm1b.load(path, fields).batches()))


def test_every_format_gives_the_same_bits(files):
    first, *others = (whole(path) for path in files)
    assert len(first) == 14
    assert list(first.columns) == [f.name for f in fields_of({})]
    for batch in others:
        for f in fields_of({}):
            ours, theirs = first[f.name], batch[f.name]
            assert ours.dtype == theirs.dtype
            assert ours.shape == theirs.shape
            same = ours.tolist() == theirs.tolist() if f.dtype == "str" else ours.tobytes()
            assert same is True or same == theirs.tobytes(), f.name


def test_rows_one_by_one(finished):
    data = qm1b.load(finished[0])
    rows = list(data)
    assert len(data) == len(rows) == 14
    assert set(rows[0]) == set(NAMES)
    water = rows[0]
    assert water["smiles"] == "O"
    assert water["positions"].shape == (3, 3)
    assert water["mo_energy"].shape == (water["n_ao"],) == (7,)
    energy = -66.0 + 1e-3 * np.sum(water["positions"].astype(float) ** 2)
    assert water["energy"] == pytest.approx(energy, abs=1e-9)
    assert data.units["energy"] == "hartree"
    assert data.metadata["settings"]["basis"] == "sto-3g"


def test_rows_by_number(files):
    for path in files[:2]:
        data = qm1b.load(path, ["line", "conformer", "positions"])
        rows = list(data)
        for i in (0, 13, 5, -1, -14):
            assert data[i]["line"] == rows[i]["line"]
            np.testing.assert_array_equal(data[i]["positions"], rows[i]["positions"])
        with pytest.raises(IndexError):
            data[14]


def test_slices(files):
    for path in files:
        data = qm1b.load(path)
        if hasattr(data, "__len__"):
            for part in (slice(2, 5), slice(-3, None), slice(None, None, -4), slice(9, 2)):
                wanted = [str(row["energy"]) for row in list(data)[part]]
                assert [str(row["energy"]) for row in data[part]] == wanted


def test_data_loaders_can_pickle(files):
    for path in files:
        data = qm1b.load(path, fields=["energy", "positions"])
        again = pickle.loads(pickle.dumps(data))
        assert again.fields == data.fields
        rows = zip(data, again, strict=True)
        assert all(str(a["energy"]) == str(b["energy"]) for a, b in rows)


def test_only_some_fields(files):
    for path in files:
        batch = whole(path, ["energy", "numbers", "smiles"])
        assert set(batch.columns) == {"energy", "numbers", "smiles", "atom_offset"}
        assert len(batch) == 14
    with pytest.raises(UserError, match=r"unknown field .gap.: use .*energy"):
        qm1b.load(files[0], ["gap"])


def test_fields_that_a_file_lacks_leave_rows_without_them(finished, tmp_path):
    path = tmp_path / "lean.parquet"
    export(finished[0], path)
    data = qm1b.load(path, ["mo_energy"])
    assert list(data) == [{}] * len(data)
    assert len(data) > 0
    assert data[0] == {}
    (batch,) = data.batches()
    assert len(batch.take(np.array([0, 2]))) == 2
    assert len(concatenate([batch, batch])) == 2 * len(data)


def test_blank_lines_between_frames(files, tmp_path):
    text = files[2].read_text()
    (tmp_path / "two.extxyz").write_text(f"\n{text}\n  \n{text}\n")
    assert len(whole(tmp_path / "two.extxyz")) == 28


def test_a_stream_is_not_read_ahead(finished, monkeypatch):
    read = []
    monkeypatch.setattr(
        shards, "read_whole", lambda path, read_whole=shards.read_whole: read.append(path)
        or read_whole(path),
    )  # fmt: skip
    data = qm1b.load(finished[0])
    assert len(data) == 14
    assert read == []
    next(iter(data))
    assert len(read) == 1


def test_a_file_of_qm1b_itself(tmp_path):
    """Its ten columns and nothing else, as in the published files."""
    pos = np.arange(9.0, dtype=np.float32)
    table = pa.table(
        {
            "smile": ["O", "[He]"],
            "atoms": ["OHH", "He"],
            "z": pa.array([[8, 1, 1], [2]], pa.list_(pa.uint8())),
            "energy": [-2000.0, -70.0],
            "homo": pa.array([-5.0, -10.0], pa.float32()),
            "lumo": pa.array([3.0, 20.0], pa.float32()),
            "N": pa.array([7, 1], pa.uint8()),
            "std": pa.array([0.001, 0.002], pa.float32()),
            "y": [8.0, 30.0],
            "pos": pa.array([pos, pos[:3]], pa.list_(pa.float32())),
        }
    )
    path = tmp_path / "qm1b.parquet"
    pq.write_table(table, path, row_group_size=1)
    data = qm1b.load(path)
    first, second = data
    assert first["energy"] == -2000.0 / HARTREE_TO_EV
    assert (first["n_ao"], second["n_ao"]) == (7, 1)
    np.testing.assert_array_equal(first["positions"], pos.reshape(3, 3))
    assert second["numbers"].tolist() == [2]
    assert "line" not in first
    assert data[1]["smiles"] == "[He]"


def test_batches_can_be_cut_and_joined(finished):
    all_rows = whole(finished[0])
    order = np.array([13, 0, 7, 7])
    taken = all_rows.take(order)
    assert len(taken) == 4
    for i, row in zip(order.tolist(), taken.rows(), strict=True):
        for name, value in all_rows.row(i).items():
            np.testing.assert_array_equal(row[name], value)
    halves = [all_rows.take(np.arange(7)), all_rows.take(np.arange(7, 14))]
    for name, values in concatenate(halves).columns.items():
        np.testing.assert_array_equal(values, all_rows[name])
    assert len(Batch({})) == 0


def test_what_is_no_dataset(tmp_path):
    (tmp_path / "a.csv").write_text("")
    (tmp_path / "a.parquet").write_text("PAR1")
    (tmp_path / "a.extxyz.gz").write_text("no gzip")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    for kind in ("parquet", "extxyz"):
        os.mkfifo(tmp_path / f"pipe.{kind}")  # to open one waits for a writer
    for name, words in {
        "none": "does not exist",
        ".": "holds no run",
        "a.csv": "unknown kind",
        "a.parquet": "not a whole Parquet file",
        "x.parquet": "lacks QM1B's columns",
        "a.extxyz.gz": "is damaged",
        "pipe.parquet": "is a pipe or a device",
        "pipe.extxyz": "is a pipe or a device",
    }.items():
        with pytest.raises(UserError, match=words):
            list(qm1b.load(tmp_path / name))


def test_import_is_light():
    code = (
        "import sys, qm1b; before = {*sys.modules}; qm1b.load;"
        "print({'numpy', 'h5py', 'pyarrow'} & before, {'jax', 'pyarrow', 'ase'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert done.stdout.strip() == "set() set()"
