"""The shared library of native codelets: where it lies, what it offers, and its registration.

Built by `pip install` where there is a C++ compiler.  Without it every codelet runs as its portable
JAX vertex, which `warn_if_missing` says once.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import jax

FILE = "libpyscf_ipu_codelets.so"
SWITCH = "PYSCF_IPU_CODELETS"
"""Environment variable: "on" (default), "off" for the portable vertices although the library is
there, or the name of an instruction set."""

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")

NAMES = (
    "ao_values",
    "becke_weights",
    "eri",
    "nuclear_attraction",
    "repulsion",
    "supermatrix",
    "xc_density",
    "xc_potential",
)


@dataclass(frozen=True)
class Library:
    """A loaded library: its file, the instruction set that it chose, and a hash of its bytes."""

    path: Path
    instruction_set: str
    digest: str


@functools.cache
def library() -> Library | None:
    """Load and register the native codelets; None if they were not built or are switched off.

    Raises ValueError if the environment variable PYSCF_IPU_CODELETS asks for something unknown, or
    for an instruction set that this machine lacks.
    """
    wanted = os.environ.get(SWITCH, "on")
    if wanted not in ("on", "off", *INSTRUCTION_SETS):
        raise ValueError(f"{SWITCH}={wanted}: set it to on, off, {', '.join(INSTRUCTION_SETS)}")
    path = None if wanted == "off" else _find()
    if path is None:
        return None
    loaded = ctypes.CDLL(str(path))
    for name in NAMES:
        handler = jax.ffi.pycapsule(getattr(loaded, f"codelet_{name}"))
        jax.ffi.register_ffi_target(target(name), handler, platform="cpu")
    loaded.codelet_instruction_set.restype = ctypes.c_char_p
    chosen = loaded.codelet_instruction_set().decode()
    if wanted in INSTRUCTION_SETS and wanted != chosen:
        raise ValueError(f"{SWITCH}={wanted}: this machine can do {chosen} at most")
    return Library(path, chosen, hashlib.sha256(path.read_bytes()).hexdigest())


def target(name: str) -> str:
    """The name under which XLA knows a codelet."""
    return f"pyscf_ipu_{name}"


def strip_primitives() -> int:
    """Primitive pairs per strip of a tile plan that suit the ERI vertex in use.

    The portable vertex wants its intermediates in a second-level cache.  The native one keeps
    them in registers, and fills its vector lanes best from a whole class.
    """
    return 1_000_000 if library() is not None and jax.default_backend() == "cpu" else 288


def describe() -> str:
    """One line for people: what is in use."""
    found = library()
    if found is not None:
        return f"native codelets ({found.instruction_set}), {found.path}"
    if os.environ.get(SWITCH) == "off":
        return f"portable JAX vertices ({SWITCH}=off)"
    return "portable JAX vertices (no native library: install a C++ compiler and reinstall)"


@functools.cache
def warn_if_missing() -> None:
    """Say once per process that the slow path is in use, unless it was asked for."""
    if library() is None and os.environ.get(SWITCH) != "off":
        warnings.warn(
            "the native codelets were not built; computing with portable JAX, several times "
            "slower on a CPU: install a C++ compiler and run pip install again",
            RuntimeWarning,
            stacklevel=3,
        )


def _find() -> Path | None:
    """Beside this file, or in site-packages if the package is installed as editable."""
    here = Path(__file__).parent
    roots = [here, *(Path(p or ".") / "pyscf_ipu" / "codelets" for p in sys.path)]
    return next((r / FILE for r in roots if (r / FILE).exists()), None)
