"""Sources of any kind: what can be opened, fingerprints, and samples row by row."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
from fake_runs import fake_run
from packs import QM9
from source_files import whole

from pyscf_ipu.molecule.molecule import Molecule
from schnet.errors import UserError
from schnet.samples.samples import Samples
from schnet.sources import base, open_source


def test_smiles_for_predictions(tmp_path):
    path = tmp_path / "a.smi"
    path.write_text("O water\n\nCC\t17\t1\n")
    found = whole(open_source(path, None))
    assert found.smiles.tolist() == ["O", "CC"]
    assert found.keys.tolist() == ["line 1", "line 3"]
    ethane = Molecule.from_smiles("CC")
    assert found[1].numbers.tolist() == ethane.numbers.tolist()
    np.testing.assert_allclose(found[1].positions_bohr, ethane.positions, rtol=1e-6)
    assert np.isnan(found.targets).all()
    with pytest.raises(UserError, match=r"a.smi is a file of SMILES, which has no gap"):
        open_source(path, "gap")
    path.write_text("O\nC[C\n")
    found = whole(open_source(path, None))
    assert found.sizes.tolist() == [3, 0]
    assert found.reasons[0] == ""
    assert found.reasons[1].startswith("SMILES 'C[C' cannot be read")
    packed = tmp_path / "b.smi.gz"
    packed.write_bytes(gzip.compress(b"O\n"))
    assert len(whole(open_source(packed, None))) == 1
    table = tmp_path / "c.csv"
    table.write_bytes(b'name,SMILES\n"a, b",O\nc,C\xff\n')
    found = whole(open_source(table, None))
    assert (found.smiles[0], found.sizes.tolist()) == ("O", [3, 0])
    assert found.reasons[1] == "holds bytes that are not SMILES text"
    table.write_text("name,gap\na,1\n")
    with pytest.raises(UserError, match="has no column called smiles, or several"):
        open_source(table, None)


def test_paths_that_cannot_be_opened(tmp_path):
    for name, message in [
        ("missing.parquet", "missing.parquet does not exist; give a folder of qm1b generate"),
        ("notes.doc", "notes.doc is of no known kind"),
        ("empty", "empty has neither a manifest.json of qm1b generate nor .parquet files"),
    ]:
        (tmp_path / "notes.doc").touch()
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(UserError, match=message):
            open_source(tmp_path / name, "gap")
    with pytest.raises(UserError, match="no data was given"):
        open_source([], "gap")
    with pytest.raises(UserError, match="--target is 'gaps': use one of gap"):
        open_source(QM9, "gaps")


def test_fingerprints(tmp_path, monkeypatch):
    run, _ = fake_run(tmp_path, "O\n", workers=1, conformers=1)
    assert open_source(run, "gap").fingerprint() == open_source(run, "energy").fingerprint()
    path = tmp_path / "a.extxyz.gz"
    data = bytearray(QM9.read_bytes())
    path.write_bytes(data)
    first = open_source(path, "gap").fingerprint()
    assert first == open_source(QM9, "gap").fingerprint()
    data[9] ^= 1  # the header's byte for the system
    path.write_bytes(data)
    assert open_source(path, "gap").fingerprint() != first
    monkeypatch.setattr(base, "BLOCK_BYTES", 16)
    sampled = base.digest(path)
    for at in (0, len(data) // 2, len(data) - 1):
        other = tmp_path / "other"
        other.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        changed = base.digest(other) != sampled
        assert changed or at == len(data) // 2  # between the blocks it goes unnoticed
    other.write_bytes(data + b"\0")
    assert base.digest(other) != sampled


def test_samples_row_by_row():
    found = whole(open_source(QM9, "gap"))
    picked = found.take(np.array([7, 0, 7]))
    assert [row.key for row in picked] == ["frame 8", "frame 1", "frame 8"]
    np.testing.assert_array_equal(picked[-1].positions_bohr, found[7].positions_bohr)
    assert picked.sizes.tolist() == [len(found[i].numbers) for i in (7, 0, 7)]
    assert len(Samples.concatenate([])) == 0
    assert len(Samples.concatenate([found, picked, Samples.of([])])) == 63
    with pytest.raises(IndexError):
        found[60]
    with pytest.raises(ValueError, match="offsets of"):
        replace(found, atom_offset=found.atom_offset[:-1])
