"""The HDF5 layouts of TorchMD-Net and of the SPICE dataset: a group of datasets per molecule.

Ace 2.0, in eV and Angstrom, is documented by its reader, `torchmdnet.datasets.Ace`: one group in
the root, and in it one for each molecule. SPICE, in atomic units: P. Eastman et al., "SPICE, A
Dataset of Drug-like Molecules and Peptides for Training Machine Learning Potentials", Sci. Data 10,
11 (2023), doi:10.1038/s41597-022-01882-6.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

import h5py
import numpy as np

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, FORCE_TO_EV_PER_ANGSTROM, HARTREE_TO_EV
from qm1b.formats.consumers.molecules import Conformers, molecules, require
from qm1b.rows.batch import Batch
from qm1b.rows.dataset import Dataset
from qm1b.storage import files

ACE, ACE_VERSION, SPICE = "Ace", "2.0", "SPICE"
MOLECULES = "molecules"
"""The group in the root of a file of the layout Ace."""

LIBVER = ("v108", "v110")
"""Groups in the compact form of HDF5 1.8; every h5py of today reads it."""


class WithUnits(NamedTuple):
    """The values of a dataset, and its attribute `units`."""

    values: object
    units: str = ""
    """Empty for a dataset without the attribute."""


def write_ace(out: Path, batches: Iterator[Batch], source: Dataset) -> list[Path]:
    """Write rows as one file; there is no file beside it.

    Raises:
        UserError: the run has no forces or no energies of free atoms, or the file cannot be
            written.
    """
    require(source, ACE)

    def fill(file: h5py.File) -> None:
        file.attrs["layout"] = ACE
        file.attrs["layout_version"] = ACE_VERSION
        file.attrs["name"] = source.path.resolve().name
        root = file.create_group(MOLECULES)
        for molecule in molecules(batches):
            values = _of_ace(molecule, source.free_atom_energies)
            _add_group(root, molecule.name, values | _ids(molecule))

    _write(out, fill)
    return []


def _of_ace(molecule: Conformers, free: dict[str, float]) -> dict[str, WithUnits]:
    """[M, ...] The datasets of a molecule with M conformers."""
    return {
        "atomic_numbers": WithUnits(molecule.numbers.astype(np.int64)),
        "formal_charges": WithUnits(molecule.formal_charges, "e"),
        "positions": WithUnits(
            _single(molecule.per_atom("positions").astype(np.float64) * BOHR_TO_ANGSTROM), "Å"
        ),
        "formation_energies": WithUnits(molecule.formation_energies(free) * HARTREE_TO_EV, "eV"),
        "forces": WithUnits(
            _single(molecule.per_atom("forces") * FORCE_TO_EV_PER_ANGSTROM), "eV/Å"
        ),
        "dipole_moments": WithUnits(_single(molecule.rows["dipole"] * BOHR_TO_ANGSTROM), "e*Å"),
        "partial_charges": WithUnits(_single(molecule.per_atom("mulliken_charges")), "e"),
        "smiles": WithUnits([molecule.smiles]),
    }


def write_spice(out: Path, batches: Iterator[Batch], source: Dataset) -> list[Path]:
    """Write rows as one file; there is no file beside it.

    Raises:
        UserError: the run has no forces or no energies of free atoms, or the file cannot be
            written.
    """
    require(source, SPICE)
    subset = source.path.resolve().name

    def fill(file: h5py.File) -> None:
        for molecule in molecules(batches):
            values = _of_spice(molecule, subset, source.free_atom_energies)
            _add_group(file, molecule.name, values | _ids(molecule))

    _write(out, fill)
    return []


def _of_spice(molecule: Conformers, subset: str, free: dict[str, float]) -> dict[str, WithUnits]:
    """[M, ...] The datasets of a molecule with M conformers."""
    return {
        "subset": WithUnits([subset]),
        "smiles": WithUnits([molecule.smiles]),
        "atomic_numbers": WithUnits(molecule.numbers.astype(np.int16)),
        "conformations": WithUnits(molecule.per_atom("positions"), "bohr"),
        "formation_energy": WithUnits(molecule.formation_energies(free), "hartree"),
        "dft_total_energy": WithUnits(molecule.rows["energy"], "hartree"),
        "dft_total_gradient": WithUnits(_single(-molecule.per_atom("forces")), "hartree/bohr"),
        "scf_dipole": WithUnits(_single(molecule.rows["dipole"]), "elementary_charge*bohr"),
        "mulliken_charges": WithUnits(
            _single(molecule.per_atom("mulliken_charges"))[..., None], "elementary_charge"
        ),
        **_properties_of_spice(molecule),
    }


def _properties_of_spice(molecule: Conformers) -> dict[str, WithUnits]:
    """[M, ...] What the run was asked for, by the names of SPICE and of QCArchive."""
    n_atoms = len(molecule.numbers)
    known = {
        "charges_lowdin": ("lowdin_charges", (n_atoms, 1), "elementary_charge"),
        "bond_orders": ("mayer_indices", (n_atoms, n_atoms), ""),
        "quadrupole": ("scf_quadrupole", (3, 3), "elementary_charge*bohr**2"),
    }
    return {
        name: WithUnits(_single(molecule.rows[field].reshape(-1, *shape)), units)
        for field, (name, shape, units) in known.items()
        if field in molecule.rows
    }


def _ids(molecule: Conformers) -> dict[str, WithUnits]:
    """[M] The names in the input, which no reader asks for; nothing if there are none."""
    return {"ids": WithUnits(molecule.ids)} if molecule.ids else {}


def _write(out: Path, fill: Callable[[h5py.File], None]) -> None:
    """Fill a new HDF5 file, and give it its name when it is whole.

    Raises:
        UserError: it cannot be written.
    """

    def write(stream: IO[bytes]) -> None:
        try:
            with h5py.File(stream, "w", libver=LIBVER) as file:
                fill(file)
        except RuntimeError as error:  # of the library, when it closes what it could not write
            raise OSError(str(error)) from error

    files.atomic_write(out, write)


def _add_group(parent: h5py.Group, name: str, datasets: Mapping[str, WithUnits]) -> None:
    """Add a group with these datasets; texts are written as variable-length UTF-8."""
    group = parent.create_group(name)
    for key, (values, units) in datasets.items():
        is_text = isinstance(values, list)
        dtype = h5py.string_dtype() if is_text else None
        dataset = group.create_dataset(key, data=values, dtype=dtype)
        if units:
            dataset.attrs["units"] = units


def _single(values: np.ndarray) -> np.ndarray:
    """Values in float32, in which the readers compute."""
    return values.astype(np.float32)
