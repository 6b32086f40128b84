"""Compiled programs on disk: read back in a third of a second, instead of traced and compiled.

A file holds the native code of one program.  Its key covers what the program is for, the settings,
the versions, the processor and the source of this package.  A file's name is only a hash of its
key, so the checksum in front of the program covers the key too: a file that was renamed, copied or
damaged is made again.
"""

import functools
import hashlib
import os
import pickle
import warnings
import zlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.experimental import serialize_executable

from pyscf_ipu.codelets.loading import library
from pyscf_ipu.errors import UntrustedCache
from pyscf_ipu.host.cache_folder import checked_folder, make_private
from pyscf_ipu.host.disk_cache import kept_in, processor
from pyscf_ipu.terminal import stderr_without

DIGEST_BYTES = 32  # SHA-256 of key and program, in front of the program
FORMAT = 3  # 1 had a checksum of the program alone, 1 and 2 held traced programs
FAST = 1  # of zlib's levels: a program shrinks to a quarter in a few milliseconds

ROOMS = "codelets elements gradient grid integrals kohn_sham numerics scf shapes tiles xc".split()
"""The folders of this package whose source decides what a program computes."""
FILES = "convergence.py settings.py units.py".split()

UNTRUE_NOTE = rb"cpu_aot_loader\.cc.*Target machine feature \+prefer-no-(gather|scatter) is"
"""XLA takes two preferences of its compiler for instructions, and then misses them in every
processor (github.com/openxla/xla/issues/44565).  Missing instructions are told of as before."""


def compiled(function: Callable, key: str, args: tuple) -> tuple[Callable[..., object], bool]:
    """A program, and whether it was found on disk.

    Args:
        function: is traced and compiled if it is not there.
        key: says what the program computes, together with the shapes and dtypes in `args`.
        args: examples of its arguments.

    Raises:
        UntrustedCache: (an OSError) others own the folder or may write to it.
    """
    path, whole_key = _place(key)
    program = _read(path, whole_key) if path else None
    if program is not None:
        return program, True
    program = jax.jit(function).lower(*args).compile()
    if path:
        _write(path, whole_key, program)
    return program, False


def _place(key: str) -> tuple[Path | None, bytes]:
    """The file of a key, None if no programs are kept; and all that it depends on."""
    folder = kept_in()
    if folder is None:
        return None, b""
    try:
        folder = checked_folder(folder)
    except UntrustedCache:
        raise
    except OSError as error:
        warnings.warn(f"programs are not kept, and compiled anew each time: {error}", stacklevel=5)
        return None, b""
    backend, device = jax.default_backend(), jax.devices()[0].device_kind
    versions = f"{jax.__version__} {version('jaxlib')} {_source()} {_codelets()}"
    flags = f"{os.environ.get('XLA_FLAGS', '')} {processor()} {jax.device_count()} {device}"
    whole_key = f"{FORMAT} {backend} {flags} {key} {versions}".encode()
    name = hashlib.sha256(whole_key).hexdigest()[:40]
    return folder / f"program-{backend}-{name}", whole_key


def _digest(key: bytes, body: bytes) -> bytes:
    """A checksum of a program and of what it is for."""
    return hashlib.sha256(hashlib.sha256(key).digest() + body).digest()


def _read(path: Path, key: bytes) -> jax.stages.Compiled | None:
    """The program of a key, if the file holds it and is whole, else None: it is compiled."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        warnings.warn(f"a program was not read and is compiled again: {error}", stacklevel=5)
        return None
    digest, body = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
    if _digest(key, body) != digest:
        what = "is damaged, or the copy of another program; it is not used, but made again"
        warnings.warn(f"{path} {what}", stacklevel=5)
        return None
    _register()
    with stderr_without(UNTRUE_NOTE):
        return serialize_executable.deserialize_and_load(*pickle.loads(zlib.decompress(body)))


def _write(path: Path, key: bytes, program: jax.stages.Compiled) -> None:
    """Keep a program.  A folder that cannot be written to costs time, not the run."""
    body = zlib.compress(pickle.dumps(serialize_executable.serialize(program)), FAST)
    # Another process may write the same program: each has its own file, the last rename wins.
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        make_private(path.parent)
        scratch.write_bytes(_digest(key, body) + body)
        scratch.rename(path)
    except OSError as error:
        warnings.warn(f"the program was not kept: {error}", stacklevel=5)


@functools.cache
def _register() -> None:
    """Make known the native functions that programs call: the codelets' and those of LAPACK.

    JAX registers LAPACK when a program that uses it is lowered.
    """
    library()
    jax.jit(jnp.linalg.eigh).lower(jax.ShapeDtypeStruct((2, 2), jnp.float32))


def _codelets() -> str:
    """The native library in use: a program calls its functions or holds portable code."""
    found = library()
    return f"{found.built_from} {found.instruction_set}" if found else "portable"


@functools.cache
def _source() -> str:
    """Hash of the Python files that decide what a program computes."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    sources = [package / name for name in FILES]
    for room in ROOMS:
        sources += sorted((package / room).rglob("*.py"))
    for path in sources:
        digest.update(path.read_bytes())
    return digest.hexdigest()
