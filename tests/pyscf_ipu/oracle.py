"""PySCF in float64 as the oracle, and the molecules that the tests share.

All molecules of SMALL have two heavy atoms and at most six hydrogens: one shape, one program.
"""

import functools

import numpy as np
from pyscf import dft, gto, scf

from pyscf_ipu import Molecule
from pyscf_ipu.units import BOHR_TO_ANGSTROM
from pyscf_ipu.xc import functional

SMALL = {
    "methanol": "CO",
    "methylamine": "CN",
    "formaldehyde": "C=O",
    "hydrogen cyanide": "C#N",
    "fluoromethane": "CF",
    "methylammonium": "C[NH3+]",
}


@functools.cache
def small(name):
    return Molecule.from_smiles(SMALL[name], seed=7)


def molecule(atoms, charge=0):
    """A Molecule from "O 0 0 0; H ..." in Angstrom."""
    rows = [row.split() for row in atoms.split(";")]
    mole = gto.M(atom=atoms, charge=charge, spin=0, basis="sto-3g", verbose=0)
    positions = np.array([[float(x) for x in row[1:]] for row in rows]) / BOHR_TO_ANGSTROM
    return Molecule(mole.atom_charges(), positions, charge)


WATER = molecule("O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692")
METHYL_CHLORIDE = molecule(
    "C 0.1 -0.2 0.3; Cl 0.1 -0.2 2.08; H 1.13 -0.2 -0.05; H -0.41 0.69 -0.05; H -0.41 -1.09 -0.05"
)
HYDROGEN = Molecule([1, 1], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.4]])


def mole_of(mol, basis="sto-3g", cart=False):
    """The PySCF molecule, atoms in the order given."""
    atoms = list(zip(mol.symbols, mol.positions, strict=True))
    return gto.M(
        atom=atoms,
        unit="Bohr",
        basis=basis,
        charge=mol.charge,
        cart=cart,
        verbose=0,
        max_memory=4e3,
    )


def ground_state(mol, basis="sto-3g", xc="b3lyp", grid_level=0, cart=False):
    """A converged PySCF calculation at the same level of theory."""
    mole = mole_of(mol, basis, cart)
    if xc == "hf":
        field = scf.RHF(mole)
    else:
        field = dft.RKS(mole, xc=functional(xc).pyscf_name)
        field.grids.level = grid_level
    field.conv_tol, field.conv_tol_grad, field.max_cycle = 1e-12, 1e-7, 200
    field.kernel()
    assert field.converged
    return field
