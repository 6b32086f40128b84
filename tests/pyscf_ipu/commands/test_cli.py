"""`pyscf-ipu`: what `info` prints, and how the command ends."""

from typing import get_args, get_type_hints

import pytest

from pyscf_ipu.codelets import describe
from pyscf_ipu.commands.cli import ProfileCommand, info, main
from pyscf_ipu.ipu import TARGETS


def test_info_says_what_is_in_use():
    text = info()
    assert describe() in text
    assert "cpu:0" in text
    assert "GiB" in text


def test_every_target_can_be_chosen():
    assert set(get_args(get_type_hints(ProfileCommand)["target"])) == TARGETS.keys()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--html", "no/folder/a.html", "there is no folder no/folder; make it first"),
        ("--compare", "bow:two", "give a target, or TARGET:IPUS"),
        ("--smiles", "C(", "SMILES"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(option, value, words, capsys, monkeypatch):
    monkeypatch.setattr("pyscf_ipu.base.host.disk_cache.enable_disk_cache", lambda: None)
    given = {"--smiles": "C", option: value}
    code = main(["profile", *(word for pair in given.items() for word in pair)])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("pyscf-ipu: ")
    assert words in err
    assert err.count("\n") == 1
