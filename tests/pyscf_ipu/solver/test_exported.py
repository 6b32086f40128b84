"""Traced programs on disk: a file gives the program that its key asks for, or none."""

import jax
import jax.numpy as jnp
import pytest

from pyscf_ipu.solver import exported


def plus(x):
    return x + 1.0


def times(x):
    return x * 3.0


@pytest.fixture
def folder(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    yield tmp_path
    jax.config.update("jax_compilation_cache_dir", before)


def run(function, key):
    """The result of a program for 2, by way of the disk."""
    x = jnp.float32(2.0)
    return float(exported.lower(function, key, (x,)).compile()(x))


def kept(folder):
    return {*folder.glob("traced-*")}


def test_a_program_is_traced_once(folder):
    assert run(plus, "hf") == 3.0
    (path,) = kept(folder)
    before = path.stat().st_mtime_ns
    assert run(times, "hf") == 3.0, "the key decides, and not the function"
    assert path.stat().st_mtime_ns == before


def test_a_copy_of_another_program_is_not_used(folder):
    """HF's file under PBE's name would give HF's energy."""
    assert run(plus, "hf") == 3.0
    (hf,) = kept(folder)
    assert run(times, "pbe") == 6.0
    (pbe,) = kept(folder) - {hf}
    pbe.write_bytes(hf.read_bytes())
    with pytest.warns(UserWarning, match="is damaged, or the copy of another program"):
        assert run(times, "pbe") == 6.0
    assert run(plus, "pbe") == 6.0, "the file must have been replaced"


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[1:]]
)
def test_a_damaged_program_is_made_again(folder, damage):
    run(plus, "hf")
    (path,) = kept(folder)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match="made again"):
        assert run(plus, "hf") == 3.0
    assert run(times, "hf") == 3.0


def test_a_program_that_cannot_be_read_is_traced(folder):
    run(plus, "hf")
    (path,) = kept(folder)
    path.unlink()
    path.mkdir()
    read = pytest.warns(UserWarning, match="was not read and is traced again")
    with read, pytest.warns(UserWarning, match="was not kept"):
        assert run(plus, "hf") == 3.0
