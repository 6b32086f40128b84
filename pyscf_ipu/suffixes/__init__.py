"""What a functional's name says of dispersion, and the parameters of each correction."""

from pyscf_ipu.suffixes.names import Dispersion, dispersion_of, without_suffix

__all__ = ["Dispersion", "dispersion_of", "without_suffix"]
