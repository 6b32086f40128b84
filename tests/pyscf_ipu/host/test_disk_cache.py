"""Where programs are kept: the environment's folder, or the user's own."""

from pyscf_ipu.host.disk_cache import enable_disk_cache, kept_in


def test_programs_are_kept_without_being_asked_for(monkeypatch, tmp_path):
    monkeypatch.delenv("PYSCF_IPU_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = kept_in()
    assert folder is not None
    assert folder.parent == tmp_path / "pyscf_ipu"
    monkeypatch.setenv("PYSCF_IPU_CACHE", str(tmp_path / "own"))
    assert kept_in() == tmp_path / "own"
    assert not (tmp_path / "own").exists(), "a question makes no folder"


def test_off_keeps_nothing_unless_a_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PYSCF_IPU_CACHE", "off")
    assert kept_in() is None
    assert enable_disk_cache() is None
    assert kept_in() is None
    assert enable_disk_cache(tmp_path / "own") == tmp_path / "own"
    assert kept_in() == tmp_path / "own"
