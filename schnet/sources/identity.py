"""What all conformers of a molecule share, in files that need not say it."""

from __future__ import annotations

import numpy as np

from pyscf_ipu.molecule import SYMBOLS
from pyscf_ipu.units import BOHR_TO_ANGSTROM
from qm1b.molecules import name_of

from ..samples import Sample


def molecule_of(row: Sample) -> str:
    """The SMILES as it stands, or without one the atoms and which of them touch.

    Conformers and frames of a trajectory then count as one molecule, isomers do not. Two spellings
    of a SMILES count as two molecules: qm1b's are canonical, others should be.
    """
    return name_of(row.smiles, 0) if row.smiles else connectivity(row)


def connectivity(row: Sample) -> str:
    """A canonical text for the atoms and the pairs of them near enough for a bond (RDKit's covalent
    radii), without bond orders and charges; the formula, where a position is not finite."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdDetermineBonds

    symbols = [SYMBOLS[z] for z in row.numbers.tolist()]
    if not np.isfinite(row.positions_bohr).all():
        return f"atoms {' '.join(sorted(symbols))}"
    angstrom = (row.positions_bohr.astype(np.float64) * BOHR_TO_ANGSTROM).tolist()
    lines = [f"{s} {x:.6f} {y:.6f} {z:.6f}" for s, (x, y, z) in zip(symbols, angstrom, strict=True)]
    with rdBase.BlockLogs():
        graph = Chem.MolFromXYZBlock("\n".join([str(len(lines)), "", *lines]) + "\n")
        rdDetermineBonds.DetermineConnectivity(graph)
    for atom in graph.GetAtoms():
        atom.SetNumRadicalElectrons(0)
        atom.SetFormalCharge(0)
    return f"bonds {Chem.MolToSmiles(graph)}"
