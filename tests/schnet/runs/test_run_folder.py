"""`run.json` that was cut, edited or crafted ends in a sentence."""

import json

import pytest

from schnet.errors import UserError
from schnet.runs.run_folder import RunFolder
from schnet.samples.references import AtomReferences

GOOD = {"format": 1, "target": "gap", "target_unit": "eV", "model": {}, "references": {}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot be read"),
        ("3", "lacks model, references, target"),
        ("[" * 100_000, "cannot be read"),
        (json.dumps({k: v for k, v in GOOD.items() if k != "model"}), "it lacks model"),
        (json.dumps(GOOD | {"format": 0}), "is of format 0"),
    ],
    ids=["empty", "number", "deep", "lacking", "version"],
)
def test_a_damaged_record_is_refused(tmp_path, text, says):
    folder = RunFolder(tmp_path)
    folder.json.write_text(text)
    with pytest.raises(UserError, match=says):
        folder.describe()


@pytest.mark.parametrize(
    "change",
    [{"elements": ["Xx"]}, {"values": ["much"]}, {"constant": None}, {"scale": []}, {"values": 3}],
    ids=str,
)
def test_damaged_references_are_refused(change):
    good = AtomReferences((1, 6), (-0.5, -38.0), 0.1, 0.2).to_dict()
    assert AtomReferences.from_dict(good).to_dict() == good
    with pytest.raises(UserError, match=r"references in run\.json are damaged"):
        AtomReferences.from_dict(good | change)
