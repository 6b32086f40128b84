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
