"""Fingerprints of runs stay what they were, so that a run of an earlier version can be resumed."""

import pytest

from qm1b.settings import PRESETS, RunSettings


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"conformers": 4}, "c9f31f0ba647aa7f"),
        ({"conformers": 2, "forces": True}, "f50e1e20bc50294f"),
    ],
)
def test_since_schema_version_4(changes, expected):
    assert RunSettings(PRESETS["qm1b"], **changes).fingerprint == expected


def test_fine_padding_is_that_of_earlier_versions():
    plain, fine, coarse = (
        RunSettings(PRESETS["qm1b"], 4, padding=p) for p in (None, "fine", "coarse")
    )
    assert plain.to_dict() == fine.to_dict()
    assert plain.fingerprint == fine.fingerprint != coarse.fingerprint
    assert coarse.to_dict() == plain.to_dict() | {"padding": "coarse"}
    assert [each.coarse for each in (plain, fine, coarse)] == [False, False, True]
