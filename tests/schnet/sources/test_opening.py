"""Sources of any kind: what can be opened, fingerprints, and samples row by row."""

import gzip
import tarfile
from dataclasses import replace

import numpy as np
import pytest
from fake_runs import fake_run
from packs import QM9
from rdkit import Chem
from rdkit.Chem import AllChem
from source_files import WATER, whole

from schnet.errors import UserError
from schnet.samples.samples import Samples
from schnet.sources import base, open_source


def test_smiles_for_predictions(tmp_path):
    path = tmp_path / "a.smi"
    path.write_text("O water\n\nCC\t17\t1\n")
    found = whole(open_source(path, None))
    assert found.smiles.tolist() == ["O", "CC"]
    assert found.keys.tolist() == ["line 1", "line 3"]
    assert found.ids.tolist() == ["water", "17"]
    run, _ = fake_run(tmp_path, "CC\n", workers=1, conformers=3, seed=0)
    ethane = whole(open_source(run, None))[0]  # the first of the conformers of qm1b
    assert found[1].numbers.tolist() == ethane.numbers.tolist()
    np.testing.assert_array_equal(found[1].positions_bohr, ethane.positions_bohr)
    assert np.isnan(found.targets).all()
    with pytest.raises(UserError, match=r"a.smi is no kind of file that has gap; give a fol"):
        open_source(path, "gap")
    path.write_text("O\nC[C\n")
    found = whole(open_source(path, None))
    assert found.sizes.tolist() == [3, 0]
    assert found.reasons[0] == ""
    assert found.reasons[1] == "unparsable: syntax error"
    packed = tmp_path / "b.smi.gz"
    packed.write_bytes(gzip.compress(b"O\n"))
    assert len(whole(open_source(packed, None))) == 1
    table = tmp_path / "c.csv"
    table.write_bytes(b'name,SMILES\n"a, b",O\nc,C\xff\n')
    found = whole(open_source(table, None))
    assert (found.smiles[0], found.sizes.tolist()) == ("O", [3, 0])
    assert found.reasons[1] == "unparsable: holds bytes that are not SMILES text"
    table.write_text("name,smiles\na,\n\nb,O\n")
    found = whole(open_source(table, None))
    assert found.ids.tolist() == ["a", "b"]
    assert found.reasons.tolist() == ["empty: no SMILES on this line", ""]
    table.write_text("name,gap\na,1\n")
    with pytest.raises(UserError, match="has no column called smiles, or several"):
        open_source(table, None)


def sdf(*smiles):
    """Entries with a geometry and a title each."""
    text = ""
    for i, one in enumerate(smiles):
        graph = Chem.AddHs(Chem.MolFromSmiles(one))
        AllChem.EmbedMolecule(graph, 7)
        graph.SetProp("_Name", f"name{i}")
        text += Chem.MolToMolBlock(graph) + "$$$$\n"
    return text


def test_whatever_qm1b_reads_is_predicted(tmp_path):
    """SDF, ids before SMILES, archives; a molecule that comes twice, an ion, a wrong unit."""
    entries = tmp_path / "a.sdf"
    entries.write_text(sdf("CCO", "CCO", "C[NH3+]"))
    found = whole(open_source(entries, None))
    assert found.ids.tolist() == ["name0", "name1", "name2"]
    assert found.keys.tolist() == ["record 1", "record 2", "record 3"]
    assert found.reasons.tolist() == [""] * 3
    assert found.doubts.tolist() == ["", "", "has charge +1, which the network does not know of"]
    names = tmp_path / "b.txt"
    names.write_text("CID1\tCCO\nCID2\tCC(\n")
    source = open_source(names, None)
    assert "second column is read as SMILES" in source.remarks[0]
    assert whole(source).ids.tolist() == ["CID1", "CID2"]
    bohr = WATER.format("").replace("0.76", "1.44").replace("0.47", "0.89").replace("0.1", "0.19")
    frames = tmp_path / "c.xyz"
    frames.write_text(WATER.format("id=w") + bohr + WATER.format("id=ion charge=2"))
    for path, key in ((frames, "frame"), (tmp_path / "c.tar.gz", "record")):
        if key == "record":
            with tarfile.open(path, "w:gz") as archive:
                archive.add(frames, "c.xyz")
        found = whole(open_source(path, None))
        assert found.keys.tolist() == [f"{key} {n}" for n in (1, 2, 3)]
        assert found.doubts[0] == ""
        assert "positions were in Bohr" in found.doubts[1]
        ion = found[2].doubt or found[2].reason
        assert "charge +2" in ion
        assert found.ids.tolist() == ["w", "", "ion"]
    assert whole(open_source(frames, None)).take(np.array([2])).ids.tolist() == ["ion"]
    frames.write_text(WATER.format("id=torn multiplicity=3"))
    assert whole(open_source(frames, None)).ids.tolist() == ["torn"]


def test_a_molecule_beyond_rdkits_limit_has_its_reason(tmp_path):
    path = tmp_path / "a.smi"
    path.write_text("C" * 900 + " long\nC\n")
    found = whole(open_source(path, None))
    assert found.reasons.tolist() == ["too_large: 2702 atoms; 2000 at most", ""]


def test_paths_that_cannot_be_opened(tmp_path):
    for name, message in [
        ("missing.parquet", "missing.parquet does not exist; give a folder of qm1b generate"),
        ("notes.doc", "notes.doc is no kind of file that has gap"),
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
