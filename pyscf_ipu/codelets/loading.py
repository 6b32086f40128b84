"""The shared library of native codelets: where it is, what it offers, and its registration.

Built by `pip install` where there is a C++ compiler.  Without it, or if it does not match this
code, every codelet runs as its portable JAX vertex, which `warn_if_missing` says once.
"""

import ctypes
import functools
import hashlib
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import jax

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.host.backend import backend

FILE = "libpyscf_ipu_codelets.so"
SWITCH = "PYSCF_IPU_CODELETS"
"""Environment variable: "on" (default), "off" for the portable vertices although the library is
there, or the name of an instruction set."""

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")

NAMES = (
    "ao_values attraction_gradient becke_gradient becke_weights compensated_dot compensated_sum "
    "eri eri_gradient exact_product fitting_columns fitting_gradient fitting_integrals "
    "fitting_repulsion fitting_solution fitting_weights look_up nonlocal_gradient nonlocal_pairs "
    "one_electron packed_ao_values pair_gradient pair_strips repulsion supermatrix xc_density "
    "xc_gradient xc_moments xc_potential xc_projection"
).split()

IN_PLACE = ("fitting_weights",)
"""Those that make their result from the first argument, in the memory of that."""

SAID = ("source_hash", "instruction_set", "built_by", "processor")
"""What the library says of itself."""


@dataclass(frozen=True)
class Library:
    """A loaded library."""

    path: Path
    instruction_set: str
    """The one that it chose."""
    built_from: str
    """The hash of its sources."""
    built_by: str
    """The compiler with its version and options."""
    processor: str
    """The widest instruction set of this processor: an editable installation compiles that of the
    machine where it was made, and the baseline."""


@functools.cache
def library() -> Library | None:
    """The native codelets, loaded and registered; None if there are none to use, see `describe`.

    Raises:
        UsageError: PYSCF_IPU_CODELETS is not one of its values, or an instruction set that this
            machine lacks or that was not compiled.
    """
    loaded = _load()
    return loaded if isinstance(loaded, Library) else None


@functools.cache
def _load() -> Library | str:
    """The library, or the reason why there is none."""
    wanted = os.environ.get(SWITCH, "on")
    if wanted not in ("on", "off", *INSTRUCTION_SETS):
        raise UsageError(
            f"{SWITCH}={wanted}: set it to one of on, off, {', '.join(INSTRUCTION_SETS)}"
        )
    if wanted == "off":
        return f"{SWITCH}=off"
    reason = "not built: install a C++ compiler, then run pip install again"
    for path in _candidates():
        try:
            loaded = ctypes.CDLL(str(path))
            texts = [getattr(loaded, f"codelet_{name}") for name in SAID]
        except (OSError, AttributeError) as error:
            reason = f"{path} cannot be used ({error}): run pip install again"
            continue
        for function in texts:
            function.restype = ctypes.c_char_p
        built_from, chosen, built_by, processor = (function().decode() for function in texts)
        if built_from != source_hash():
            reason = f"{path} was built from other sources: run pip install again"
            continue
        if wanted in INSTRUCTION_SETS and wanted != chosen:
            raise UsageError(
                f"{SWITCH}={wanted}: this machine lacks it, or it was not compiled (an editable "
                f"installation has baseline and that of its machine); set {SWITCH} to on"
            )
        for name in NAMES:
            handler = jax.ffi.pycapsule(getattr(loaded, f"codelet_{name}"))
            jax.ffi.register_ffi_target(target(name), handler, platform="cpu")
        return Library(path, chosen, built_from, built_by=built_by, processor=processor)
    return reason


def source_hash() -> str:
    """Hash of the C++ beside this file, which the library carries too (CMakeLists.txt)."""
    files = sorted((Path(__file__).parent / "cpp").rglob("*.?pp"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


def _candidates() -> list[Path]:
    """Beside this file, or in site-packages if the package is installed as editable."""
    folders = [Path(__file__).parent]
    folders += [Path(p) / "pyscf_ipu" / "codelets" for p in sys.path if p]
    return [f / FILE for f in dict.fromkeys(folders) if (f / FILE).exists()]


def target(name: str) -> str:
    """The name of a codelet in XLA."""
    return f"pyscf_ipu_{name}"


def native_in_use() -> bool:
    """Whether programs compiled now will call native codelets."""
    return library() is not None and backend() == "cpu"


def strip_primitives() -> int:
    """Primitive pairs per strip of a tile plan that suit the ERI vertex in use.

    The portable vertex wants its intermediates in a second-level cache.  The native one keeps
    them in registers, and fills its vector lanes best from a whole class.
    """
    return 1_000_000 if native_in_use() else 288


def describe() -> str:
    """One line for people: what is in use, and why."""
    loaded = _load()
    if isinstance(loaded, Library):
        return f"native codelets ({loaded.instruction_set}), {loaded.path}"
    return f"portable JAX vertices ({loaded})"


@functools.cache
def warn_if_missing() -> None:
    """Say once per process that a slow path is in use, unless it was asked for."""
    loaded, switch = library(), os.environ.get(SWITCH, "on")
    if loaded is not None and switch == "on" and loaded.instruction_set != loaded.processor:
        warnings.warn(
            f"the native codelets were compiled on another processor: {loaded.instruction_set} is "
            f"in use, {loaded.processor} would be faster; run pip install again on this machine",
            RuntimeWarning,
            stacklevel=3,
        )
    if loaded is None and switch != "off":
        warnings.warn(
            f"the native codelets are not in use ({_load()}); portable JAX computes instead, which "
            "is several times slower on a CPU",
            RuntimeWarning,
            stacklevel=3,
        )
