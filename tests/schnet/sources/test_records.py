"""Records of the inputs of `qm1b generate`: each becomes a sample, or a reason."""

import pytest

from schnet.sources.records import RecordSource


@pytest.mark.parametrize("smiles", ["C1C[C@H]2C[C@H]1CC2", "C(((", "C.C"])
def test_what_has_no_geometry_ends_nothing(tmp_path, smiles):
    path = tmp_path / "a.smi"
    path.write_text(f"{smiles}\nCO\n")
    samples, _ = RecordSource(path, "smiles").read_part(0)
    assert [reason != "" for reason in samples.reasons] == [True, False]
    assert samples.atom_offset.tolist() == [0, 0, 6]
