"""Density-functional theory in one file of NumPy and JAX, for reading.

The public names are imported when they are first used, which keeps `nanodft --help` fast.
"""

from typing import TYPE_CHECKING

from pyscf_ipu.base.lazy import lazy

if TYPE_CHECKING:
    from pyscf_ipu.molecule.named.geometries import molecule_from_text
    from pyscf_ipu.nanodft.dft import Theory, energy, forces, scf

_HOME = {
    "Theory": ".dft",
    "energy": ".dft",
    "forces": ".dft",
    "molecule_from_text": "pyscf_ipu.molecule.named.geometries",
    "scf": ".dft",
}

__all__ = ["Theory", "energy", "forces", "molecule_from_text", "scf"]

__getattr__, __dir__ = lazy(__name__, _HOME)
