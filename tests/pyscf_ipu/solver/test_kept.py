"""Compiled programs on disk: a file gives the program that its key asks for, or none."""

import os
import pickle
import stat
import subprocess
import sys
import zlib
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from pyscf_ipu.base.host import cache_folder
from pyscf_ipu.solver import kept


def plus(x):
    return x + 1.0


def times(x):
    return x * 3.0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSCF_IPU_CACHE", str(tmp_path))
    return tmp_path


def run(function, key):
    """The result of a program for 2, by way of the disk."""
    x = jnp.float32(2.0)
    return float(kept.compiled(function, key, (x,))[0](x))


def files(folder):
    return {*folder.glob("program-*")}


def test_a_program_is_compiled_once(folder):
    assert run(plus, "hf") == 3.0
    (path,) = files(folder)
    before = path.stat().st_mtime_ns
    assert run(times, "hf") == 3.0, "the key decides, and not the function"
    assert path.stat().st_mtime_ns == before


def test_a_copy_of_another_program_is_not_used(folder):
    """HF's file under PBE's name would give HF's energy."""
    assert run(plus, "hf") == 3.0
    (hf,) = files(folder)
    assert run(times, "pbe") == 6.0
    (pbe,) = files(folder) - {hf}
    pbe.write_bytes(hf.read_bytes())
    with pytest.warns(UserWarning, match="is damaged, or the copy of another program"):
        assert run(times, "pbe") == 6.0
    assert run(plus, "pbe") == 6.0, "the file must have been replaced"


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[1:]]
)
def test_a_damaged_program_is_made_again(folder, damage):
    run(plus, "hf")
    (path,) = files(folder)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match="made again"):
        assert run(plus, "hf") == 3.0
    assert run(times, "hf") == 3.0


def test_a_program_that_cannot_be_read_is_compiled(folder):
    run(plus, "hf")
    (path,) = files(folder)
    path.unlink()
    path.mkdir()
    read = pytest.warns(UserWarning, match="was not read and is compiled again")
    with read, pytest.warns(UserWarning, match="was not kept"):
        assert run(plus, "hf") == 3.0


@pytest.mark.parametrize("bits", [0o602, 0o666])
def test_a_program_that_others_may_write_to_is_not_run(folder, bits, monkeypatch):
    """Its folder may have been open to them when they wrote it."""
    run(plus, "hf")
    (path,) = files(folder)
    path.chmod(bits)
    monkeypatch.setenv("PYSCF_IPU_CACHE_SHARED", "on")
    assert run(times, "hf") == 3.0, "a folder that is shared on purpose"
    monkeypatch.delenv("PYSCF_IPU_CACHE_SHARED")
    with pytest.warns(UserWarning, match=rf"{path.name} can be written to by everybody") as said:
        assert run(times, "hf") == 6.0
    assert len(said) == 1
    assert path.stat().st_mode & 0o777 == 0o600
    assert run(plus, "hf") == 6.0, "the file must have been replaced"


def test_a_program_of_another_user_is_not_run(folder, monkeypatch):
    run(plus, "hf")
    (path,) = files(folder)
    path.chmod(0o644)
    owner = path.stat().st_uid
    distrust = cache_folder.distrust

    def of_another(info, user, is_private):
        return distrust(info, user + stat.S_ISREG(info.st_mode), is_private)

    monkeypatch.setattr(cache_folder, "ROOT", -1)
    monkeypatch.setattr(cache_folder, "distrust", of_another)
    with pytest.warns(UserWarning, match=rf"compiled again: .* another user \(uid {owner}"):
        assert run(times, "hf") == 6.0


def test_a_link_to_a_program_is_not_followed(folder):
    run(plus, "hf")
    (path,) = files(folder)
    path.rename(folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")
    with pytest.warns(UserWarning, match="was not read and is compiled again"):
        assert run(times, "hf") == 6.0


def test_a_folder_that_cannot_be_made_costs_time_alone(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYSCF_IPU_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="programs are not kept"):
        assert run(plus, "hf") == 3.0


@pytest.mark.usefixtures("homeless")
def test_a_user_without_a_home_keeps_nothing():
    with pytest.warns(UserWarning, match="programs are not kept"):
        assert run(plus, "hf") == 3.0


def test_a_whole_file_that_cannot_be_used_is_made_again(folder):
    run(plus, "hf")
    (path,) = files(folder)
    good = path.read_bytes()
    key = kept._place("hf", jax.devices()[0])[1]
    body = zlib.compress(pickle.dumps((b"of another kind", None, None)))
    path.write_bytes(cache_folder.with_checksum(key, body))
    with pytest.warns(UserWarning, match="cannot be used and is made again"):
        assert run(plus, "hf") == 3.0
    assert len(path.read_bytes()) > len(good) // 2
    assert run(times, "hf") == 3.0


def test_the_key_covers_all_the_source_of_a_program():
    """Every module that making a program loads, except what no number comes from."""
    script = (
        "import sys, pyscf_ipu.kohn_sham.batch, pyscf_ipu.gradient\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('pyscf_ipu')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    package = Path(kept.__file__).parents[1]
    loaded = {Path(name).relative_to(package) for name in done.stdout.split()}
    covered = {Path(name) for name in kept.FILES}
    others = {p for p in loaded - covered if p.parts[0] not in kept.ROOMS}
    assert {p.as_posix() for p in others if p.parts[0] != "molecule"} <= {
        "__init__.py",
        "base/__init__.py",
        "base/errors.py",
        "base/lazy.py",
        "base/nearest.py",
        "base/extras.py",
    }


TWICE = """
import jax, sys
import pyscf_ipu as pi
if sys.argv[1:]:
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
mol = pi.Molecule([1, 1], [[0, 0, 0], [0, 0, 1.4]])
print(pi.rks(mol, xc="hf", grid_level=0, forces=True).energy.hex())
"""


def twice(folder, *arguments, **environment):
    """What the script says, in a process of its own."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "TF_CPP"))}
    done = subprocess.run(
        [sys.executable, "-c", TWICE, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=clean | {"PYSCF_IPU_CACHE": str(folder)} | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


TWO_DEVICES = "--xla_force_host_platform_device_count=2"


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["", pytest.param(TWO_DEVICES, marks=pytest.mark.long)])
def test_a_second_process_loads_the_program_and_says_nothing(tmp_path, flags):
    """XLA takes preferences of its compiler for missing instructions, in two pages of text."""
    flags = f"{os.environ['XLA_FLAGS']} {flags}".strip()
    first, second = (twice(tmp_path / "cache", XLA_FLAGS=flags) for _ in range(2))
    assert first == second
    assert first[1] == ""
    assert len(files(tmp_path / "cache")) == 2


def test_a_program_that_jax_had_is_not_kept(folder):
    """JAX says so while it compiles; the next test shows that it does, and why it matters."""

    def had(x):
        jax.monitoring.record_event("/jax/compilation_cache/cache_hits")
        return x + 1.0

    x = jnp.float32(2.0)
    program, found = kept.compiled(had, "hf", (x,))
    assert float(program(x)) == 3.0
    assert found
    assert files(folder) == set()


@pytest.mark.long
def test_a_program_from_jax_s_own_cache_is_not_kept(tmp_path):
    """JAX gives it without half of its code, so that later processes would fail."""
    cache = tmp_path / "cache"
    first = twice(cache, tmp_path / "jax")
    for path in files(cache):
        path.unlink()
    second = twice(cache, tmp_path / "jax")
    assert files(cache) == set()
    assert first[0] == second[0] == twice(cache)[0]
    assert len(files(cache)) == 2


def test_options_that_a_jaxlib_does_not_know_are_left_out(folder, monkeypatch):
    monkeypatch.setattr(kept, "QUICK", {"xla_cpu_no_such_choice": True})
    kept._quick.cache_clear()
    assert kept._quick("cpu") == {}
    x = jnp.float32(2.0)
    assert float(kept.compiled(plus, "unknown option", (x,), quick=True)[0](x)) == 3.0
    monkeypatch.undo()
    kept._quick.cache_clear()
    assert kept._quick("gpu") == {}


def test_what_a_killed_process_left_is_removed_with_the_next_program(folder):
    assert run(plus, "hf") == 3.0
    (path,) = files(folder)
    left = path.with_name(f".{path.name}.1.tmp")
    path.rename(left)
    assert run(plus, "hf") == 3.0
    assert list(folder.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o600
