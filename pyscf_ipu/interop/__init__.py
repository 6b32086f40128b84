"""What PySCF and ASE see of the engine; `RKS`, PySCF's mean-field class with this package's SCF."""

from typing import TYPE_CHECKING

from pyscf_ipu.lazy import lazy

if TYPE_CHECKING:
    from pyscf_ipu.interop.rks import RKS

__all__ = ["RKS"]

# On demand: it imports PySCF.
__getattr__, __dir__ = lazy(__name__, {"RKS": ".rks"})
