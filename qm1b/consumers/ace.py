"""TorchMD-Net's layout Ace, version 2.0: HDF5 with a group per molecule, in eV and Angstrom.

Its reader, `torchmdnet.datasets.Ace`, documents the layout. There must be one group in the root,
and in it one for each molecule.
"""

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from pyscf_ipu.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from qm1b.consumers.ase_rows import EV_PER_ANGSTROM
from qm1b.consumers.hdf5 import WithUnits, add_group, single, write_hdf5
from qm1b.consumers.molecules import Conformers, molecules, require
from qm1b.rows.batch import Batch
from qm1b.rows.dataset import Dataset

LAYOUT, LAYOUT_VERSION = "Ace", "2.0"
ROOT = "molecules"


def write_ace(out: Path, batches: Iterator[Batch], source: Dataset) -> list[Path]:
    """Write rows as one file; there is no file beside it.

    Raises:
        UserError: the run has no forces or no energies of free atoms, or the file cannot be
            written.
    """
    require(source, LAYOUT)

    def fill(file: h5py.File) -> None:
        file.attrs["layout"] = LAYOUT
        file.attrs["layout_version"] = LAYOUT_VERSION
        file.attrs["name"] = source.path.resolve().name
        root = file.create_group(ROOT)
        for molecule in molecules(batches):
            add_group(root, molecule.name, _datasets(molecule, source.free_atom_energies))

    write_hdf5(out, fill)
    return []


def _datasets(molecule: Conformers, free: dict[str, float]) -> dict[str, WithUnits]:
    """[M, ...] The datasets of a molecule with M conformers."""
    return {
        "atomic_numbers": WithUnits(molecule.numbers.astype(np.int64)),
        "formal_charges": WithUnits(molecule.formal_charges, "e"),
        "positions": WithUnits(
            single(molecule.per_atom("positions").astype(np.float64) * BOHR_TO_ANGSTROM), "Å"
        ),
        "formation_energies": WithUnits(molecule.formation_energies(free) * HARTREE_TO_EV, "eV"),
        "forces": WithUnits(single(molecule.per_atom("forces") * EV_PER_ANGSTROM), "eV/Å"),
        "dipole_moments": WithUnits(single(molecule.rows["dipole"] * BOHR_TO_ANGSTROM), "e*Å"),
        "partial_charges": WithUnits(single(molecule.per_atom("mulliken_charges")), "e"),
        "smiles": WithUnits([molecule.smiles]),
    }
