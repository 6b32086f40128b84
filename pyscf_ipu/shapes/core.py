"""The core potentials of one molecule: their matrix and their forces, by PySCF in float64.

A potential replaces the inner electrons of an element beyond krypton (`elements.basis_sets`).  It
is one matrix more beside kinetic energy and attraction, made on the host for every conformer.
"""

import numpy as np
from jaxtyping import Float
from pyscf import gto, lib

from pyscf_ipu.elements.basis_sets import core_electrons
from pyscf_ipu.elements.mixed import functions_of
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.numerics.precision import Precision
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.shape import Shape, class_members


def has_core(shape: Shape, settings: Settings) -> bool:
    """Whether a slot of the shape may hold an element with a core potential."""
    basis, cart = settings.basis, settings.cart
    return any(
        core_electrons(basis, z)
        for c in shape.classes
        for z in class_members(c.family, c.kinds, basis, cart=cart)
    )


def numerics_of(shape: Shape, settings: Settings, has_float64: bool = True) -> Precision:
    """The dtypes and thresholds of a shape's programs; see `Settings.numerics_of`."""
    return settings.numerics_of(has_float64, heavy=has_core(shape, settings))


def core_matrix(mol: Molecule, settings: Settings) -> Float[np.ndarray, "N N"]:
    """All potentials between AOs in PySCF's order, Hartree."""
    mole, functions = _mole(mol, settings)
    with lib.with_omp_threads(1):  # a batch of molecules is on every core
        return functions.T @ mole.intor("ECPscalar") @ functions


def core_forces(
    mol: Molecule, settings: Settings, density: Float[np.ndarray, "N N"]
) -> Float[np.ndarray, "A 3"]:
    """-dE/dR of the potentials' energy tr(D U) at fixed D, Hartree/Bohr.

    A potential moves against the AOs: where all of them move with it, nothing changes.

    Args:
        mol: the molecule.
        settings: its level.
        density: D, AOs in PySCF's order.
    """
    mole, functions = _mole(mol, settings)
    density = functions @ density @ functions.T
    forces = np.zeros((mol.n_atoms, 3))
    for centre, number in enumerate(mol.numbers.tolist()):
        if not core_electrons(settings.basis, number):
            continue
        with mole.with_rinv_at_nucleus(centre), lib.with_omp_threads(1):
            slope = mole.intor("ECPscalar_iprinv", comp=3)  # (d/dr i| U |j)
        on_aos = 2.0 * np.einsum("xij,ij->ix", slope, density)
        for atom, (_, _, first, last) in enumerate(mole.aoslice_by_atom()):
            forces[atom] += on_aos[first:last].sum(0)
        forces[centre] -= on_aos.sum(0)
    return forces


def _mole(mol: Molecule, settings: Settings) -> tuple[gto.Mole, np.ndarray]:
    """PySCF's molecule, and the level's AOs in terms of its own."""
    mole = settings.pyscf_mole(mol.numbers, mol.positions, mol.charge, unpaired=mol.unpaired)
    return mole, functions_of(mole, settings.cart)
