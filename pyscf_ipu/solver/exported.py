"""Traced programs on disk, beside JAX's compiled ones.

JAX's own cache saves XLA's work, but finding an entry needs the traced program, and tracing one
of ours takes seconds.  A program is exported once (StableHLO) and read back from then on.  The key
covers the shape, the settings, the versions and the source of this package.  A file's name is only
a hash of its key, so the checksum in front of the program covers the key too: a file that was
renamed, copied or damaged is made again.
"""

import functools
import hashlib
import os
import warnings
from importlib.metadata import version
from pathlib import Path

import jax
from jax import export

from pyscf_ipu.codelets.loading import NAMES, library, target
from pyscf_ipu.convergence import Aids
from pyscf_ipu.gradient import State
from pyscf_ipu.kohn_sham.hamiltonian import EnergyTerms
from pyscf_ipu.kohn_sham.program import Driver, Solution
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.conformer import Conformer
from pyscf_ipu.shapes.tables import ClassTable, OneCentre
from pyscf_ipu.solver.cache_folder import make_private

DIGEST_BYTES = 32  # SHA-256 of key and program, in front of the program
FORMAT = 2  # 1 had a checksum of the program alone

TRACED_ROOMS = "codelets elements gradient grid integrals numerics scf shapes tiles xc".split()
"""The folders of this package whose source decides what a program computes."""


def lower(function: Driver, key: str, args: tuple) -> jax.stages.Lowered:
    """`jax.jit(function).lower(*args)`, by way of the disk if a compilation cache is set."""
    directory = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if not directory:
        return jax.jit(function).lower(*args)
    _register()
    backend = jax.default_backend()
    versions = f"{jax.__version__} {version('jaxlib')} {_source()} {_codelets()}"
    whole_key = f"{FORMAT} {backend} {key} {versions}".encode()
    name = hashlib.sha256(whole_key).hexdigest()[:40]
    path = Path(directory) / f"traced-{backend}-{name}"
    traced = _read(path, whole_key)
    if traced is None:
        checks = [export.DisabledSafetyCheck.custom_call(target(name)) for name in NAMES]
        traced = export.export(jax.jit(function), disabled_checks=checks)(*args)
        _write(path, whole_key, traced)
    # Compiling what was written, also the first time, gives the compiled cache one key for both.
    return jax.jit(traced.call).lower(*args)


def _digest(key: bytes, body: bytes) -> bytes:
    """A checksum of a program and of what it is for."""
    return hashlib.sha256(hashlib.sha256(key).digest() + body).digest()


def _read(path: Path, key: bytes) -> export.Exported | None:
    """The program of a key, if the file holds it and is whole, else None: it is traced again."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        warnings.warn(f"a traced program was not read and is traced again: {error}", stacklevel=2)
        return None
    digest, body = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
    if _digest(key, body) != digest:
        what = "is damaged, or the copy of another program; it is not used, but made again"
        warnings.warn(f"{path} {what}", stacklevel=2)
        return None
    return export.deserialize(bytearray(body))


def _write(path: Path, key: bytes, traced: export.Exported) -> None:
    """Keep a program.  A cache that cannot be written costs time, not the run."""
    body = bytes(traced.serialize())
    # Another process may write the same program: each has its own file, the last rename wins.
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        make_private(path.parent)
        scratch.write_bytes(_digest(key, body) + body)
        scratch.rename(path)
    except OSError as error:
        warnings.warn(f"the traced program was not kept: {error}", stacklevel=2)


@functools.cache
def _register() -> None:
    """Tell jax.export how the arguments and results are nested."""
    for cls in (Pair, OneCentre, ClassTable, Aids, Conformer, EnergyTerms, Solution, State):
        export.register_namedtuple_serialization(cls, serialized_name=f"pyscf_ipu.{cls.__name__}")


def _codelets() -> str:
    """The native library in use: a program calls its functions or holds portable code."""
    found = library()
    return f"{found.built_from} {found.instruction_set}" if found else "portable"


@functools.cache
def _source() -> str:
    """Hash of the Python files that a program's text depends on."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    sources = [package / "convergence.py"]
    for room in TRACED_ROOMS:
        sources += sorted((package / room).rglob("*.py"))
    for path in sources:
        digest.update(path.read_bytes())
    return digest.hexdigest()
