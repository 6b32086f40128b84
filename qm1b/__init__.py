"""qm1b: from a file of SMILES to a dataset of Kohn-Sham energies, orbital energies and gaps::

    python -m qm1b.cli generate molecules.smi --out data/mine --conformers 10

    for row in qm1b.load("data/mine"):
        print(row["smiles"], row["energy"])  # hartree

Everything here is host code (files, RDKit, processes); the physics is `pyscf_ipu`, which only the
compute workers run. The names in `__all__` are public. Importing the package imports neither RDKit
nor JAX: each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pyscf_ipu.base.lazy import lazy

if TYPE_CHECKING:
    from qm1b.audit.verify import verify
    from qm1b.convert.export import export
    from qm1b.convert.importing import import_file
    from qm1b.convert.merge import merge
    from qm1b.convert.split import Fractions, split
    from qm1b.errors import UserError
    from qm1b.formats.load import load
    from qm1b.reference.recompute import recompute
    from qm1b.run.generate import Run, generate
    from qm1b.settings import PRESETS, RunSettings

_HOME = {
    "PRESETS": ".settings",
    "Fractions": ".convert.split",
    "Run": ".run.generate",
    "RunSettings": ".settings",
    "UserError": ".errors",
    "export": ".convert.export",
    "generate": ".run.generate",
    "import_file": ".convert.importing",
    "load": ".formats.load",
    "merge": ".convert.merge",
    "recompute": ".reference.recompute",
    "split": ".convert.split",
    "verify": ".audit.verify",
}

__all__ = [
    "PRESETS",
    "Fractions",
    "Run",
    "RunSettings",
    "UserError",
    "export",
    "generate",
    "import_file",
    "load",
    "merge",
    "recompute",
    "split",
    "verify",
]

__getattr__, __dir__ = lazy(__name__, _HOME)
