"""Where programs are kept: what was given to JAX, the environment's folder, or the user's own."""

from pathlib import Path

import jax
import pytest

from pyscf_ipu.host.disk_cache import enable_disk_cache, kept_in


@pytest.fixture
def no_folder_of_jax(monkeypatch):
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", before)


@pytest.mark.usefixtures("no_folder_of_jax")
def test_programs_are_kept_without_being_asked_for(monkeypatch, tmp_path):
    monkeypatch.delenv("PYSCF_IPU_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = kept_in()
    assert folder is not None
    assert folder.parent == tmp_path / "pyscf_ipu"
    monkeypatch.setenv("PYSCF_IPU_CACHE", str(tmp_path / "own"))
    assert kept_in() == tmp_path / "own"
    assert not (tmp_path / "own").exists(), "a question makes no folder"


@pytest.mark.usefixtures("no_folder_of_jax")
def test_a_folder_given_to_jax_counts_first(tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    assert kept_in() == Path(tmp_path)


def test_off_keeps_nothing(monkeypatch):
    monkeypatch.setenv("PYSCF_IPU_CACHE", "off")
    assert kept_in() is None
    before = jax.config.jax_compilation_cache_dir
    assert enable_disk_cache() is None
    assert jax.config.jax_compilation_cache_dir == before
