"""Runs of qm1b, their exports and QM1B's own files: the same molecules from all, dropped rows."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_runs import fake_run
from packs import QM9
from source_files import qm1b_table, whole

import qm1b
from qm1b.convert.export import export
from schnet.errors import UserError
from schnet.sources import open_source


def same(one, other):
    """Whether rows agree: atoms and text exactly, targets to what eV columns keep."""
    for name in ("numbers", "atom_offset"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.smiles.tolist() == other.smiles.tolist()
    np.testing.assert_allclose(one.positions_bohr, other.positions_bohr, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(one.targets, other.targets, rtol=1e-7, atol=1e-7)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in which chlorine does not converge."""
    folder = tmp_path_factory.mktemp("run")
    return fake_run(folder, "O\nC\nCCl\nCC\nCCO\n", workers=1, conformers=3)[0]


@pytest.mark.parametrize(
    "target", ["gap", "energy", "atomisation_energy", "homo", "lumo", "dipole_norm"]
)
def test_a_run_and_its_exports_give_the_same(run, tmp_path, target):
    source = open_source(run, target)
    good = [row for row in qm1b.load(run) if row["converged"]]
    assert source.dropped == {}
    found = whole(source)
    assert source.dropped == {"not converged": 3}
    assert sum(source.sizes) == len(found) + 3 == len(good) + 3
    for row, other in zip(found, good, strict=True):
        np.testing.assert_array_equal(row.positions_bohr, other["positions"])
        expected = {
            "gap": other["lumo"] - other["homo"],
            "dipole_norm": float(np.linalg.norm(other["dipole"])),
        }.get(target, other.get(target))
        assert row.target == pytest.approx(expected, rel=1e-14)
        assert row.key == f"line {other['line']} conformer {other['conformer']}"
    for name in ("a.parquet", "a.extxyz", "a.extxyz.gz"):
        export(run, tmp_path / name)
        same(whole(open_source(tmp_path / name, target)), found)
    assert open_source(tmp_path / "a.parquet", "energy").units == {"pos": "bohr", "energy": "eV"}


def test_a_prediction_takes_all_rows(run):
    source = open_source(run, None)
    found = whole(source)
    assert len(found) == sum(source.sizes)
    assert np.isnan(found.targets).all()
    assert not source.dropped
    assert np.isnan(whole(open_source(QM9, None)).targets).all()


def test_a_prediction_has_the_ids_of_rows_and_doubts_about_ions(tmp_path):
    run, _ = fake_run(tmp_path, "CC ethane\nC[NH3+] ion\n", conformers=1, keep_charged=True)
    export(run, tmp_path / "a.parquet")
    for path in (run, tmp_path / "a.parquet"):
        found = whole(open_source(path, None))
        assert found.ids.tolist() == ["ethane", "ion"]
        assert found.doubts.tolist() == ["", "has charge +1, which the network does not know of"]
        assert whole(open_source(path, "energy")).ids.tolist() == ["", ""]  # nobody reads them


def test_qm1b_s_own_files(tmp_path):
    path = tmp_path / "part0.parquet"
    pq.write_table(qm1b_table(), path, row_group_size=2)
    source = open_source(path, "gap", unit="eV")
    assert source.sizes == [2, 1]
    found = whole(source)
    assert source.dropped == {"std of 0.01 eV or more": 1}
    assert found.targets == pytest.approx([14.0 / 27.211386245988, 18.0 / 27.211386245988])
    assert found.keys.tolist() == ["row 0", "row 2"]
    assert found[1].numbers.tolist() == [6, 1, 1, 1, 1]
    assert found[1].positions_bohr.ravel().tolist() == [0.5 * i for i in range(15)]
    with pytest.raises(UserError, match=r"part0.parquet has no dipole; --target dipole_norm needs"):
        whole(open_source(path, "dipole_norm"))
    with pytest.raises(UserError, match="--unit is 'hartree', but its column homo is in eV"):
        open_source(path, "gap", unit="hartree")
    with pytest.raises(UserError, match=r"--key is for extended XYZ; .*part0.parquet"):
        open_source(path, "gap", key="y")


def test_several_files_are_one_source(tmp_path):
    for i in range(3):
        pq.write_table(qm1b_table(), tmp_path / f"part{i}.parquet")
    folder = open_source(tmp_path, "energy")
    assert folder.sizes == [3, 3, 3]
    found = whole(folder)
    assert found.keys[2] == "part1.parquet row 0"
    assert folder.dropped == {"std of 0.01 eV or more": 3}
    files = sorted(tmp_path.glob("*.parquet"))
    assert whole(open_source(files, "energy")).keys.tolist() == found.keys.tolist()
    assert open_source(files, "energy").fingerprint() == folder.fingerprint()
    assert open_source(files[:2], "energy").fingerprint() != folder.fingerprint()
    mixed = open_source([files[0], QM9], "gap")
    assert mixed.units == {"pos": "bohr", "homo": "eV", "lumo": "eV"} | {
        "positions": "angstrom",
        "gap_au": "hartree",
    }
    assert len(whole(mixed)) == 62


def test_damaged_tables(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(qm1b_table(pos=pa.array([[0.0] * 9] * 3, pa.list_(pa.float32()))), path)
    with pytest.raises(UserError, match=r"a.parquet is damaged: part 0 has 11 .*\(z\) but 9 pos"):
        whole(open_source(path, "gap"))
    pq.write_table(qm1b_table(lumo=None), path)
    with pytest.raises(UserError, match=r"a.parquet has no lumo; --target gap needs homo and lumo"):
        whole(open_source(path, "gap"))
    pq.write_table(qm1b_table(), path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match=r"a.parquet is not a whole Parquet file"):
        open_source(path, "gap")


def test_suspect_rows_are_left_out(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(qm1b_table(suspect=pa.array(["", "", "energy_outlier"])), path)
    source = open_source(path, "gap")
    assert whole(source).keys.tolist() == ["row 0"]
    assert source.dropped == {"std of 0.01 eV or more": 1, "suspect": 1}
