"""Traced programs on disk, beside JAX's compiled ones.

JAX's own cache saves XLA's work, but finding an entry needs the traced program, and tracing one
of ours takes seconds.  A program is exported once (StableHLO) and read back from then on.  The key
covers the shape, the settings, the versions and the source of this package.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from jax import export

from pyscf_ipu.hamiltonian import EnergyTerms
from pyscf_ipu.precision import Pair
from pyscf_ipu.program import Solution
from pyscf_ipu.tables import ClassTable, Conformer, OneCentre


def lower(function: Callable[..., Any], key: str, args: tuple) -> jax.stages.Lowered:
    """`jax.jit(function).lower(*args)`, by way of the disk if a compilation cache is set."""
    directory = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if not directory:
        return jax.jit(function).lower(*args)
    _register()
    name = hashlib.sha256(f"{key} {jax.__version__} {_source()}".encode()).hexdigest()[:40]
    path = Path(directory) / f"traced-{jax.default_backend()}-{name}"
    if path.exists():
        traced = export.deserialize(bytearray(path.read_bytes()))
    else:
        traced = export.export(jax.jit(function))(*args)
        # Another process may write the same program: each has its own file, the last rename wins.
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        scratch.write_bytes(traced.serialize())
        scratch.rename(path)
    # Compiling what was written, also the first time, gives the compiled cache one key for both.
    return jax.jit(traced.call).lower(*args)


@functools.cache
def _register() -> None:
    """Tell jax.export how the arguments and results are nested."""
    for cls in (Pair, OneCentre, ClassTable, Conformer, EnergyTerms, Solution):
        export.register_namedtuple_serialization(cls, serialized_name=f"pyscf_ipu.{cls.__name__}")


@functools.cache
def _source() -> str:
    """Hash of this package's Python files."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
