"""Float32 restricted Kohn-Sham DFT in one compiled function per molecular shape.

    import pyscf_ipu as pi
    mol = pi.Molecule.from_smiles("CCO", seed=0)
    result = pi.rks(mol, basis="sto-3g", xc="b3lyp")

Importing the package changes no global JAX setting, and imports JAX only when it is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOME = {
    "Calculator": "ase_calculator",
    "Convergence": "convergence",
    "ConvergenceError": "errors",
    "InvalidMolecule": "errors",
    "Molecule": "molecule",
    "Optimized": "geometry",
    "RKSResult": "result",
    "Settings": "settings",
    "Solver": "solver",
    "enable_disk_cache": "cache",
    "forces": "kohn_sham",
    "optimize": "geometry",
    "rks_core": "core",
    "rks": "kohn_sham",
}

__all__ = [
    "Calculator",
    "Convergence",
    "ConvergenceError",
    "InvalidMolecule",
    "Molecule",
    "Optimized",
    "RKSResult",
    "Settings",
    "Solver",
    "enable_disk_cache",
    "forces",
    "optimize",
    "rks",
    "rks_core",
]

if TYPE_CHECKING:
    from pyscf_ipu.ase_calculator import Calculator
    from pyscf_ipu.cache import enable_disk_cache
    from pyscf_ipu.convergence import Convergence
    from pyscf_ipu.core import rks_core
    from pyscf_ipu.errors import ConvergenceError, InvalidMolecule
    from pyscf_ipu.geometry import Optimized, optimize
    from pyscf_ipu.kohn_sham import forces, rks
    from pyscf_ipu.molecule import Molecule
    from pyscf_ipu.result import RKSResult
    from pyscf_ipu.settings import Settings
    from pyscf_ipu.solver import Solver


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'pyscf_ipu' has no attribute {name!r}")
    return getattr(import_module(f"pyscf_ipu.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
