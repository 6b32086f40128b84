"""The Parquet file: QM1B's columns and Arrow types exactly, and only rows that are good."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyscf_ipu.units import HARTREE_TO_EV
from qm1b.errors import UserError
from qm1b.export import arrow_schema, export
from qm1b.schema import COLUMNS

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
    assert schema.names[10:] == [
        *("status", "converged", "cycles", "commutator_norm", "dipole", "conformer", "seed")
    ]
    for column in COLUMNS:
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


def test_many_orbitals_widen_the_column():
    keys = ("functional_definition", "settings", "fingerprint", "versions", "input")
    manifest = dict.fromkeys(keys, "") | {"settings": {"max_aos": 300}}
    assert arrow_schema(manifest).field("N").type == pa.uint16()


def test_refusals(finished, tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        export(tmp_path / "none", tmp_path / "a.parquet")
    with pytest.raises(UserError, match="does not exist"):
        export(finished[0], tmp_path / "none" / "a.parquet")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="cannot write"):
        export(finished[0], tmp_path / "folder")
