"""Density-functional theory in 300 lines of NumPy and JAX, for reading.

The public names are imported when they are first used, which keeps `nanodft --help` fast.
"""

from typing import TYPE_CHECKING

from pyscf_ipu.lazy import lazy

if TYPE_CHECKING:
    from pyscf_ipu.nanodft.dft import energy, forces, scf
    from pyscf_ipu.nanodft.molecules import molecule_from_text

_HOME = {"energy": ".dft", "forces": ".dft", "molecule_from_text": ".molecules", "scf": ".dft"}

__all__ = ["energy", "forces", "molecule_from_text", "scf"]

__getattr__, __dir__ = lazy(__name__, _HOME)
