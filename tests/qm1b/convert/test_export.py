"""The Parquet file: QM1B's columns and Arrow types exactly, and only rows that are good."""

import os

import ase.io
import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ase import units

from pyscf_ipu.base.units import HARTREE_TO_EV
from qm1b.cli import main
from qm1b.convert.export import export
from qm1b.errors import UserError
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats import parquet
from qm1b.formats.columns import COLUMNS, arrow_schema, exact_columns
from qm1b.rows.schema import fields_of

QM1B = {
    "smile": pa.string(),
    "atoms": pa.string(),
    "z": pa.list_(pa.uint8()),
    "energy": pa.float64(),
    "homo": pa.float32(),
    "lumo": pa.float32(),
    "N": pa.uint8(),
    "std": pa.float32(),
    "y": pa.float64(),
    "pos": pa.list_(pa.float32()),
}


def test_columns_types_units_and_metadata(finished, tmp_path):
    out = tmp_path / "data.parquet"
    done = export(finished[0], out)
    schema = pq.read_schema(out)
    assert schema.names[:10] == list(QM1B)
    assert [schema.field(name).type for name in QM1B] == list(QM1B.values())
    assert schema.names == [column.name for column in COLUMNS if not column.only_with]
    assert {"status", "converged", "dipole", "conformer", "seed", "line"} < set(schema.names)
    for column in COLUMNS[: len(schema.names)]:
        assert schema.field(column.name).metadata[b"unit"].decode() == column.unit
    assert b"libxc" in schema.metadata[b"functional_definition"]
    assert (done.rows, done.left_out) == (8, 6)


def test_values(finished, tmp_path):
    export(finished[0], tmp_path / "data.parquet")
    table = pd.read_parquet(tmp_path / "data.parquet")
    assert set(table["status"]) == {"converged"}
    water = table.iloc[0]
    assert (water["smile"], water["atoms"], water["N"]) == ("O", "OHH", 7)
    assert water["z"].tolist() == [8, 1, 1]
    energy = -66.0 + 1e-3 * np.sum(np.asarray(water["pos"], dtype=float) ** 2)
    assert water["energy"] == pytest.approx(energy * HARTREE_TO_EV, abs=1e-9)
    assert water["y"] == pytest.approx(0.5 * HARTREE_TO_EV, abs=1e-12)
    assert len(water["pos"]) == 9
    assert table["energy"].dtype == np.float64


def test_everything_on_request(finished, tmp_path):
    done = export(finished[0], tmp_path / "all.parquet", everything=True)
    table = pd.read_parquet(tmp_path / "all.parquet")
    assert (done.rows, done.left_out, len(table)) == (14, 0, 14)
    assert table["energy"].isna().sum() == 4


def test_what_is_left_out_is_said(finished, tmp_path, capsys):
    assert main(["export", str(finished[0]), str(tmp_path / "data.parquet")]) == 0
    assert "8 rows; left out 6 not converged or not finite (--all" in capsys.readouterr().out


def test_many_orbitals_widen_the_column():
    keys = ("functional_definition", "settings", "fingerprint", "versions", "input")
    manifest = dict.fromkeys(keys, "") | {"settings": {"max_aos": 300}}
    assert arrow_schema(manifest).field("N").type == pa.uint16()


def test_refusals(finished, tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        export(tmp_path / "none", tmp_path / "a.parquet")
    with pytest.raises(UserError, match="there is no folder"):
        export(finished[0], tmp_path / "none" / "a.parquet")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(UserError, match="cannot write"):
        export(finished[0], tmp_path / "folder.parquet")
    with pytest.raises(UserError, match="unknown kind"):
        export(finished[0], tmp_path / "a.csv")


def test_exact_columns_have_their_unit_in_the_name():
    names = {f.name: name for f, name in exact_columns(fields_of({}))}
    assert names["energy"] == "energy_hartree"
    assert names["dipole"] == "dipole_e_bohr"
    assert names["mo_energy"] == "mo_energy_hartree"
    assert names["mulliken_charges"] == "mulliken_charges_e"
    assert not {"line", "charge", "positions", "smiles", "n_ao"} & set(names)


def test_row_groups_are_full_whatever_the_shards(finished, tmp_path, monkeypatch):
    assert parquet.ROWS_PER_GROUP >= 50_000
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 5)
    source = ShardFolder(finished[0])
    assert source.sizes == [8, 4, 2, 0]
    path = tmp_path / "data.parquet"
    with open(path, "wb") as stream:
        schema = arrow_schema(source.metadata)
        assert parquet.write(stream, source.batches(), schema) == 14
    groups = pq.ParquetFile(path).metadata
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [5, 5, 4]
    smile = groups.row_group(0).column(0)
    assert smile.compression == "ZSTD"
    assert "RLE_DICTIONARY" in smile.encodings
    lines = [row["line"] for row in source]
    assert pd.read_parquet(path)["line"].tolist() == lines


def test_other_readers_see_the_same(finished, tmp_path):
    path = tmp_path / "data.parquet"
    export(finished[0], path, everything=True)
    expected = pq.read_table(path).to_pylist()
    by_polars = polars.read_parquet(path).to_dicts()
    by_duckdb = duckdb.sql(f"select * from '{path}'").to_arrow_table().to_pylist()
    for table in (by_polars, by_duckdb):
        assert repr(table) == repr(expected)  # NaN is not equal to itself
    query = f"select count(*), max(len(pos) - 3 * len(z)) from '{path}' where converged"
    assert duckdb.sql(query).fetchall() == [(8, 0)]


def test_extended_xyz_as_ase_reads_it(finished, tmp_path):
    done = export(finished[0], tmp_path / "data.extxyz")
    assert (done.rows, done.left_out) == (8, 6)
    frames = ase.io.read(tmp_path / "data.extxyz", ":")
    frames = [atoms for atoms in frames if atoms.info["config_type"] != "IsolatedAtom"]
    rows = [row for row in ShardFolder(finished[0]) if row["status"] == "converged"]
    assert len(frames) == len(rows) == 8
    for atoms, row in zip(frames, rows, strict=True):
        assert atoms.numbers.tolist() == row["numbers"].tolist()
        np.testing.assert_allclose(atoms.positions, row["positions"] * units.Bohr, rtol=1e-6)
        energy = atoms.get_potential_energy()
        assert energy == pytest.approx(row["energy"] * units.Hartree, rel=1e-7)
        dipole = atoms.get_dipole_moment()
        np.testing.assert_allclose(dipole, row["dipole"] * units.Bohr, rtol=1e-6)
        assert atoms.arrays["mulliken_charges_e"].tolist() == row["mulliken_charges"].tolist()
        assert atoms.info["smiles"] == row["smiles"]
        assert not atoms.pbc.any()


def test_names_as_long_as_the_system_allows(finished, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for ending in (".parquet", ".extxyz.gz", ".aselmdb", ".db"):
        longest = "a" * (255 - len(ending)) + ending
        assert main(["export", str(finished[0]), longest]) == 0
        os.unlink(longest)
        for words in (["a" + longest], [longest, "--all"]):
            if ending in (".aselmdb", ".db") and "--all" in words:
                continue
            capsys.readouterr()
            assert main(["export", str(finished[0]), *words]) == 2
            errors = capsys.readouterr().err
            assert "255 bytes: give a shorter one" in errors
            assert errors.count("\n") == 1
            assert [path.name for path in tmp_path.iterdir() if path.name != "metadata.npz"] == []
