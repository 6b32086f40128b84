"""Compiled programs on disk: read back in a third of a second, instead of traced and compiled.

A file holds the native code of one program.  Its key covers what the program is for, the settings,
the versions, the processor and the source of this package.  A file that was renamed, copied or
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
from typing import Any

import jax
import jax.monitoring
import jax.numpy as jnp
from jax.experimental import serialize_executable

from pyscf_ipu.base.errors import UntrustedCache
from pyscf_ipu.base.host.backend import device
from pyscf_ipu.base.host.cache_folder import (
    PRIVATE_FILE,
    checked_folder,
    make_private,
    read_trusted,
    with_checksum,
    without_checksum,
)
from pyscf_ipu.base.host.disk_cache import kept_in, processor
from pyscf_ipu.base.host.modes import lowered_plainly
from pyscf_ipu.base.host.quiet import quiet_xla
from pyscf_ipu.base.host.temporaries import replacing
from pyscf_ipu.codelets.loading import library

FORMAT = 3  # 1 had a checksum of the program alone, 1 and 2 held traced programs
FAST = 1  # of zlib's levels: a program shrinks to a quarter in a few milliseconds

ROOMS = (
    "codelets elements fitting gradient grid integrals ipu kohn_sham machines numerics scf "
    "settings shapes tiles xc"
).split()
"""The folders of this package whose source decides what a program computes."""
FILES = ("base/units.py base/host/__init__.py base/host/backend.py solver/platform.py").split()

QUICK: dict[str, str | bool] = {"xla_cpu_use_fusion_emitters": False}
"""For CPUs: XLA's earlier emitter of fused steps, which takes half the time.  Energies come as fast
with it, forces in small basis sets take a third longer.  jaxlib 0.11.2 has no such choice any
more."""

UNUSABLE = (
    jax.errors.JaxRuntimeError,
    pickle.PickleError,
    ValueError,
    NotImplementedError,
    KeyError,
)
"""What JAX raises where it cannot read or write a program."""


def compiled(
    function: Callable, key: str, args: tuple, quick: bool = False
) -> tuple[Callable[..., object], bool]:
    """A program, and whether it was found on disk.

    Args:
        function: is traced and compiled if it is not there.
        key: says what the program computes, together with the shapes and dtypes in `args`.
        args: examples of its arguments.
        quick: compile in half the time, by QUICK.

    Raises:
        UntrustedCache: (an OSError) others own the folder or may write to it.
    """
    here = device()
    options = _quick(here.platform) if quick else {}
    path, whole_key = _place(f"{options} {key}" if options else key, here)
    program = _read(path, whole_key, here) if path else None
    if program is not None:
        return program, True
    before = _cache_hits().count
    lowered = lowered_plainly(function, args)
    with quiet_xla():  # its simplifier calls itself stuck on f shells, and stops in time
        program = lowered.compile(options)
    of_jax = _cache_hits().count > before
    if path and not of_jax:  # one that JAX's own cache holds comes without half of its code
        _write(path, whole_key, program)
    return program, of_jax


class _CacheHits:
    """Counts how often a program came from JAX's own cache, which a user may have enabled."""

    def __init__(self) -> None:
        self.count = 0
        jax.monitoring.register_event_listener(self._listen)

    def _listen(self, event: str, **_: object) -> None:
        if event == "/jax/compilation_cache/cache_hits":
            self.count += 1


@functools.cache
def _cache_hits() -> _CacheHits:
    """The one counter of the process: JAX offers no way to take a listener back."""
    return _CacheHits()


@functools.cache
def _quick(platform: str) -> dict[str, str | bool]:
    """QUICK, where it is of use and this jaxlib knows it."""
    if platform != "cpu":
        return {}
    with jax.default_device(jax.devices("cpu")[0]):
        trial = jax.jit(jnp.negative).lower(jnp.zeros(()))
        try:
            trial.compile(QUICK)
        except jax.errors.JaxRuntimeError as error:
            if "No such compile option" in str(error):
                return {}
            raise
    return QUICK


def _place(key: str, device: Any) -> tuple[Path | None, bytes]:
    """The file of a key, None if no programs are kept; and all that it depends on."""
    try:
        folder = kept_in()
        if folder is None:
            return None, b""
        folder = checked_folder(folder)
    except UntrustedCache:
        raise
    except (OSError, RuntimeError) as error:  # RuntimeError: this user has no home
        warnings.warn(f"programs are not kept, and compiled anew each time: {error}", stacklevel=5)
        return None, b""
    where = f"{device.platform} {device.device_kind} {device.id} of {jax.device_count()}"
    versions = f"{jax.__version__} {version('jaxlib')} {version('numpy')} {_source()} {_codelets()}"
    flags = f"{os.environ.get('XLA_FLAGS', '')} {processor()}"
    whole_key = f"{FORMAT} {where} {flags} {key} {versions}".encode()
    name = hashlib.sha256(whole_key).hexdigest()[:40]
    return folder / f"program-{device.platform}-{name}", whole_key


def _read(path: Path, key: bytes, device: Any) -> jax.stages.Compiled | None:
    """The program of a key, if the file holds it and is whole, else None: it is compiled."""
    try:
        body = without_checksum(key, read_trusted(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        warnings.warn(f"a program was not read and is compiled again: {error}", stacklevel=5)
        return None
    if body is None:
        what = "is damaged, or the copy of another program; it is not used, but made again"
        warnings.warn(f"{path} {what}", stacklevel=5)
        return None
    _register()
    try:
        parts = pickle.loads(zlib.decompress(body))
        with quiet_xla():
            return serialize_executable.deserialize_and_load(*parts, execution_devices=[device])
    except UNUSABLE as error:
        warnings.warn(f"{path} cannot be used and is made again: {error}", stacklevel=5)
        return None


def _write(path: Path, key: bytes, program: jax.stages.Compiled) -> None:
    """Keep a program.  A folder that cannot be written to costs time, not the run."""
    try:
        body = zlib.compress(pickle.dumps(serialize_executable.serialize(program)), FAST)
        make_private(path.parent)
        # Others may write the same program: each has its own file, the last rename wins.
        with replacing(path, PRIVATE_FILE) as file:
            file.write(with_checksum(key, body))
    except (*UNUSABLE, OSError) as error:
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
    loaded = library()
    return f"{loaded.built_from} {loaded.instruction_set}" if loaded else "portable"


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
