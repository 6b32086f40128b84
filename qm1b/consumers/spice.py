"""The layout of the SPICE dataset: HDF5 with a group per molecule, in atomic units.

The layout: P. Eastman et al., "SPICE, A Dataset of Drug-like Molecules and Peptides for Training
Machine Learning Potentials", Sci. Data 10, 11 (2023), doi:10.1038/s41597-022-01882-6.
"""

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from qm1b.consumers.hdf5 import WithUnits, add_group, single, write_hdf5
from qm1b.consumers.molecules import Conformers, molecules, require
from qm1b.rows.batch import Batch
from qm1b.rows.dataset import Dataset

LAYOUT = "SPICE"


def write_spice(out: Path, batches: Iterator[Batch], source: Dataset) -> list[Path]:
    """Write rows as one file; there is no file beside it.

    Raises:
        UserError: the run has no forces or no energies of free atoms, or the file cannot be
            written.
    """
    require(source, LAYOUT)
    subset = source.path.resolve().name

    def fill(file: h5py.File) -> None:
        for molecule in molecules(batches):
            add_group(file, molecule.name, _datasets(molecule, subset, source.free_atom_energies))

    write_hdf5(out, fill)
    return []


def _datasets(molecule: Conformers, subset: str, free: dict[str, float]) -> dict[str, WithUnits]:
    """[M, ...] The datasets of a molecule with M conformers."""
    return {
        "subset": WithUnits([subset]),
        "smiles": WithUnits([molecule.smiles]),
        "atomic_numbers": WithUnits(molecule.numbers.astype(np.int16)),
        "conformations": WithUnits(molecule.per_atom("positions"), "bohr"),
        "formation_energy": WithUnits(molecule.formation_energies(free), "hartree"),
        "dft_total_energy": WithUnits(molecule.rows["energy"], "hartree"),
        "dft_total_gradient": WithUnits(single(-molecule.per_atom("forces")), "hartree/bohr"),
        "scf_dipole": WithUnits(single(molecule.rows["dipole"]), "elementary_charge*bohr"),
        "mulliken_charges": WithUnits(
            single(molecule.per_atom("mulliken_charges"))[..., None], "elementary_charge"
        ),
    }
