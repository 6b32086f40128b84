"""The keywords of a level are the fields of `Settings`."""

from dataclasses import fields
from typing import get_args, get_type_hints

from pyscf_ipu import Settings
from pyscf_ipu.settings import LevelKeywords


def test_every_field_is_a_keyword_and_may_be_none():
    """But `history`, which `rks` has as an argument of its own: other functions return none."""
    hints = get_type_hints(LevelKeywords)
    assert [*hints, "history"] == [field.name for field in fields(Settings)]
    assert all(type(None) in get_args(hint) for hint in hints.values())
