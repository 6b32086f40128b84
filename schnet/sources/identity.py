"""What all conformers of a molecule share, in files that need not say it."""

import numpy as np

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.elements.spellings import SYMBOLS
from qm1b.rows.identity import bonds_of, name_of
from schnet.samples.samples import Sample


def molecule_of(row: Sample) -> str:
    """The SMILES as it stands, or without one the atoms and which of them touch.

    Conformers and frames of a trajectory then count as one molecule, isomers do not. Two spellings
    of a SMILES count as two molecules: qm1b's are canonical, others should be.
    """
    return name_of(row.smiles, 0) if row.smiles else connectivity(row)


def connectivity(row: Sample) -> str:
    """`bonds_of` the atoms; their formula, where a position is not finite."""
    if not np.isfinite(row.positions_bohr).all():
        return f"atoms {' '.join(sorted(SYMBOLS[z] for z in row.numbers.tolist()))}"
    angstrom = row.positions_bohr.astype(np.float64) * BOHR_TO_ANGSTROM
    return bonds_of(row.numbers, angstrom)
