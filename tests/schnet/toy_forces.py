"""Molecules in a made-up field of pairs of atoms, whose energies and forces are known exactly."""

import numpy as np
from ase import Atoms
from ase.io import write
from packs import qm9

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from schnet.samples.samples import Sample, Samples

RANGE_BOHR = 2.0
EV_PER_ANGSTROM = HARTREE_TO_EV / BOHR_TO_ANGSTROM


def energy_and_forces(positions):
    """The sum of exp(-r / RANGE) over pairs in hartree, and minus its gradient."""
    apart = positions[:, None] - positions
    distance = np.linalg.norm(apart, axis=-1) + np.eye(len(positions))
    pair = np.exp(-distance / RANGE_BOHR) * (1.0 - np.eye(len(positions)))
    forces = (pair / distance / RANGE_BOHR)[:, :, None] * apart
    return 0.5 * pair.sum(), forces.sum(axis=1)


def toy(rows=None, copies=1, sigma_bohr=0.1):
    """Real molecules, each atom displaced at random, in the field."""
    random, found = np.random.default_rng(0), []
    for row in qm9(rows):
        for copy in range(copies):
            step = random.normal(scale=sigma_bohr, size=row.positions_bohr.shape)
            positions = (row.positions_bohr + step).astype(np.float32)
            energy, forces = energy_and_forces(positions.astype(np.float64))
            found.append(
                Sample(
                    row.numbers,
                    positions,
                    energy,
                    row.smiles,
                    f"{row.key} copy {copy}",
                    forces=forces.astype(np.float32),
                )
            )
    return Samples.of(found)


def written(path, samples, column="forces", key="energy_ev"):
    """The rows as extended XYZ in eV and eV/Angstrom, by ASE."""
    frames = []
    for row in samples:
        atoms = Atoms(row.numbers, row.positions_bohr * BOHR_TO_ANGSTROM)
        atoms.info |= {"smiles": row.smiles, key: row.target * HARTREE_TO_EV}
        atoms.arrays[column] = row.forces * EV_PER_ANGSTROM
        frames.append(atoms)
    write(path, frames, format="extxyz")
    return path
