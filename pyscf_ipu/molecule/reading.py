"""All molecules of a file."""

import warnings
from pathlib import Path

from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.molecule.parts import ALL, is_sdf, read_sdf, read_xyz


def read_molecules(path: str | Path) -> list[Molecule]:
    """All frames of an XYZ or extended XYZ file, or all entries of an SDF file, in their order.

    Warnings are those of `Molecule.from_xyz`.

    Args:
        path: the file, packed or not; SDF if its name ends in .sdf, .sd or .mol.

    Raises:
        FileNotFoundError: there is no such file.
        InvalidMolecule: one of them cannot be read or computed; the others can be read one by one,
            with `index=`.
    """
    path = Path(path)
    molecules, remarks = read_sdf(path, ALL) if is_sdf(path) else read_xyz(path, ALL)
    for remark in remarks:
        warnings.warn(remark, stacklevel=2)
    return [Molecule(**parts._asdict()) for parts in molecules]
