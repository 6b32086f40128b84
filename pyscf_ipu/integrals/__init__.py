"""One- and two-electron integrals from Hermite pair data."""

from pyscf_ipu.integrals.electron_repulsion import eri_blocks
from pyscf_ipu.integrals.one_electron import OneElectron, nuclear_repulsion, one_electron

__all__ = ["OneElectron", "eri_blocks", "nuclear_repulsion", "one_electron"]
