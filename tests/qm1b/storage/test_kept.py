"""Small results on disk: found again, and nothing else is."""

import shutil

import pytest

from qm1b.storage.kept import find, keep

KEY = {"level": "b3lyp", "most": 9}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSCF_IPU_CACHE", str(tmp_path / "programs"))
    return tmp_path / "programs"


def test_a_result_is_found_by_its_name_and_key(folder):
    assert find("atoms", KEY) is None
    keep("atoms", KEY, {"H": -0.5})
    assert find("atoms", dict(reversed(KEY.items()))) == {"H": -0.5}
    assert find("atoms", KEY | {"most": 10}) is None
    assert find("others", KEY) is None
    keep("atoms", KEY, {"H": -0.4})
    assert find("atoms", KEY) == {"H": -0.4}


@pytest.mark.parametrize("harm", ["cut", "digit", "renamed"])
def test_a_damaged_file_is_not_used(folder, harm):
    keep("atoms", KEY, {"H": -0.5})
    (path,) = folder.iterdir()
    data = path.read_bytes()
    if harm == "renamed":
        other = KEY | {"most": 10}
        keep("atoms", other, {"H": -0.4})
        (second,) = set(folder.iterdir()) - {path}
        shutil.copy(path, second)
        assert find("atoms", other) is None
    else:
        path.write_bytes(data[:-3] if harm == "cut" else data.replace(b"-0.5", b"-0.6"))
        assert find("atoms", KEY) is None


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for place in ("off", str(tmp_path / "file")):
        monkeypatch.setenv("PYSCF_IPU_CACHE", place)
        keep("atoms", KEY, {"H": -0.5})
        assert find("atoms", KEY) is None


def test_a_folder_that_others_may_write_to_is_not_read(folder):
    keep("atoms", KEY, {"H": -0.5})
    folder.chmod(0o777)
    assert find("atoms", KEY) is None
