"""Float32 Kohn-Sham DFT in one compiled function per molecular shape::

    import pyscf_ipu as pi
    mol = pi.Molecule.from_smiles("CCO", seed=0)
    result = pi.rks(mol, basis="sto-3g", xc="b3lyp")

Importing the package changes no global JAX setting, and imports JAX only when it is needed.
"""

from typing import TYPE_CHECKING

from pyscf_ipu.base.lazy import lazy

__version__ = "0.2.0"

_HOME = {
    "Calculator": ".api.calculator",
    "Convergence": ".scf.convergence",
    "ConvergenceError": ".base.errors",
    "Frequencies": ".api.frequencies",
    "InvalidMolecule": ".base.errors",
    "Molecule": ".molecule.molecule",
    "Optimized": ".api.optimize",
    "RKSResult": ".results.result",
    "Settings": ".settings",
    "Solver": ".solver.solver",
    "UntrustedCache": ".base.errors",
    "UsageError": ".base.errors",
    "clear": ".solver.shared",
    "enable_disk_cache": ".base.host.disk_cache",
    "energy_function": ".api.differentiable",
    "forces": ".api.energies",
    "frequencies": ".api.frequencies",
    "optimize": ".api.optimize",
    "rks_core": ".solver.rks_core",
    "read_molecules": ".molecule.reading",
    "rks": ".api.energies",
    "uks": ".api.energies",
}

__all__ = [
    "Calculator",
    "Convergence",
    "ConvergenceError",
    "Frequencies",
    "InvalidMolecule",
    "Molecule",
    "Optimized",
    "RKSResult",
    "Settings",
    "Solver",
    "UntrustedCache",
    "UsageError",
    "clear",
    "enable_disk_cache",
    "energy_function",
    "forces",
    "frequencies",
    "optimize",
    "read_molecules",
    "rks",
    "rks_core",
    "uks",
]

if TYPE_CHECKING:
    from pyscf_ipu.api.calculator import Calculator
    from pyscf_ipu.api.differentiable import energy_function
    from pyscf_ipu.api.energies import forces, rks, uks
    from pyscf_ipu.api.frequencies import Frequencies, frequencies
    from pyscf_ipu.api.optimize import Optimized, optimize
    from pyscf_ipu.base.errors import ConvergenceError, InvalidMolecule, UntrustedCache, UsageError
    from pyscf_ipu.base.host.disk_cache import enable_disk_cache
    from pyscf_ipu.molecule.molecule import Molecule
    from pyscf_ipu.molecule.reading import read_molecules
    from pyscf_ipu.results.result import RKSResult
    from pyscf_ipu.scf.convergence import Convergence
    from pyscf_ipu.settings import Settings
    from pyscf_ipu.solver.rks_core import rks_core
    from pyscf_ipu.solver.shared import clear
    from pyscf_ipu.solver.solver import Solver

__getattr__, __dir__ = lazy(__name__, _HOME, absent=".api.advice")
