"""Fingerprints of runs: what decides rows is in them, and old ones can still be told."""

import pytest

from qm1b.settings import PRESETS, RunSettings, fingerprint_of, without_later


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"conformers": 4}, "c9f31f0ba647aa7f"),
        ({"conformers": 2, "forces": True}, "f50e1e20bc50294f"),
    ],
)
def test_in_the_words_of_schema_version_4(changes, expected):
    now = RunSettings(PRESETS["qm1b"], unit_rows=1024, **changes)
    values = now.to_dict()
    assert values["first_cycles"] == "coarse"  # it changes numbers, so it is said at its default
    told = {k: v for k, v in values.items() if k != "first_cycles"}
    assert fingerprint_of(without_later(values, told)) == expected != now.fingerprint
    assert fingerprint_of(without_later(values, values)) == now.fingerprint
    full = values | {"first_cycles": "full"}
    assert without_later(full, told) == full  # not the default, so it cannot be left out


def test_fine_padding_is_that_of_earlier_versions():
    plain, fine, coarse = (
        RunSettings(PRESETS["qm1b"], 4, padding=p) for p in (None, "fine", "coarse")
    )
    assert plain.to_dict() == fine.to_dict()
    assert plain.fingerprint == fine.fingerprint != coarse.fingerprint
    assert coarse.to_dict() == plain.to_dict() | {"padding": "coarse"}
    assert [each.coarse for each in (plain, fine, coarse)] == [False, False, True]
