"""What PySCF sees of the engine: its mean-field classes with this SCF, and the integrals."""

from typing import TYPE_CHECKING

from pyscf_ipu.base.lazy import lazy

if TYPE_CHECKING:
    from pyscf_ipu.interop.matrices import AllIntegrals, integrals
    from pyscf_ipu.interop.mean_field import RKS, UKS

__all__ = ["RKS", "UKS", "AllIntegrals", "integrals"]

# On demand: it imports PySCF.
_HOME = {
    **dict.fromkeys(("RKS", "UKS"), ".mean_field"),
    **dict.fromkeys(("AllIntegrals", "integrals"), ".matrices"),
}
__getattr__, __dir__ = lazy(__name__, _HOME)
