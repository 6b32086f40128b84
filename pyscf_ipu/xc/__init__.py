"""Exchange-correlation functionals of closed-shell densities: :func:`functional` finds one."""

from pyscf_ipu.suffixes.names import FUNCTIONALS
from pyscf_ipu.xc.functionals import Functional
from pyscf_ipu.xc.registry import functional

__all__ = ["FUNCTIONALS", "Functional", "functional"]
