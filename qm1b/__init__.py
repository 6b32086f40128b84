"""qm1b: from a file of SMILES to a dataset of Kohn-Sham energies, orbital energies and gaps.

    python -m qm1b.cli generate molecules.smi --out data/mine --conformers 10

    for row in qm1b.load("data/mine"):
        print(row["smiles"], row["energy"])  # hartree

Everything here is host code (files, RDKit, processes); the physics is `pyscf_ipu`, which only the
compute workers run.  Importing this package imports neither, and `load` only when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .reading import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    """`qm1b.load`, imported when it is first used."""
    if name == "load":
        from .reading import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
