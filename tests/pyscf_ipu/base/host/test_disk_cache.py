"""Where programs are kept: the environment's folder, or the user's own."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.host import disk_cache
from pyscf_ipu.base.host.disk_cache import enable_disk_cache, kept_in, processor


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


@pytest.mark.usefixtures("homeless")
def test_a_user_without_a_home_is_told_what_to_do():
    with pytest.raises(UsageError, match=r"home directory\.\): set PYSCF_IPU_CACHE"):
        disk_cache.keep_programs()


@pytest.fixture
def mac(monkeypatch):
    """A machine without /proc/cpuinfo; the model of its processor can be changed."""
    model = SimpleNamespace(stdout="Apple M2\n")
    exists = Path.exists
    monkeypatch.setattr(
        Path, "exists", lambda p: {"cpuinfo": False, "sysctl": True}.get(p.name, exists(p))
    )
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: model)
    disk_cache._named.cache_clear()
    yield model
    disk_cache._named.cache_clear()


def test_models_of_a_mac_have_folders_of_their_own(mac):
    first = processor()
    mac.stdout = "Apple M4 Pro\n"
    assert processor() == first, "asked once a process"
    disk_cache._named.cache_clear()
    assert processor() != first
    disk_cache._named.cache_clear()
    mac.stdout = ""  # sysctl did not answer
    assert processor()
