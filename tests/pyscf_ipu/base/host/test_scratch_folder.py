"""Temporary files: a folder that is gone afterwards, or one sentence."""

import tempfile

import pytest

from pyscf_ipu.base.errors import UntrustedCache, UsageError
from pyscf_ipu.base.host.temporaries import scratch_folder


def inside(act):
    with scratch_folder() as folder:
        (folder / "a").touch()
        act(folder)


def raising(error):
    def act(folder):
        raise error

    return act


def test_the_folder_is_gone_afterwards():
    found = []
    inside(found.append)
    assert not found[0].exists()


def test_a_full_disk_is_one_sentence():
    with pytest.raises(UsageError, match=r"cannot be written \(No space left.*TMPDIR"):
        inside(raising(OSError(28, "No space left on device")))


def test_no_folder_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(UsageError, match=r"cannot be written \(No such file or directory\)"):
        inside(print)


@pytest.mark.parametrize("error", [UntrustedCache("whose?"), UsageError("what?")])
def test_other_mistakes_have_their_own_words(error):
    with pytest.raises(type(error), match=str(error).replace("?", r"\?")):
        inside(raising(error))
