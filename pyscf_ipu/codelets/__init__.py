"""Native C++ codelets for the CPU, each beside a portable JAX vertex of the same name."""

from pyscf_ipu.codelets.call import codelet, codelet_p, row_codelet
from pyscf_ipu.codelets.loading import (
    Library,
    describe,
    library,
    native_in_use,
    strip_primitives,
    warn_if_missing,
)

__all__ = [
    "Library",
    "codelet",
    "codelet_p",
    "describe",
    "library",
    "native_in_use",
    "row_codelet",
    "strip_primitives",
    "warn_if_missing",
]
