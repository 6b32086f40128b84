"""What PySCF sees of the engine: its mean-field class with this SCF, and the integrals."""

from typing import TYPE_CHECKING

from pyscf_ipu.base.lazy import lazy

if TYPE_CHECKING:
    from pyscf_ipu.interop.matrices import AllIntegrals, integrals
    from pyscf_ipu.interop.rks import RKS

__all__ = ["RKS", "AllIntegrals", "integrals"]

# On demand: it imports PySCF.
_HOME = {"RKS": ".rks", "AllIntegrals": ".matrices", "integrals": ".matrices"}
__getattr__, __dir__ = lazy(__name__, _HOME)
