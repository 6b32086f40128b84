"""A free atom by PySCF: its density, and its integrals with its own nucleus."""

import functools

import numpy as np
from pyscf import gto, scf

from pyscf_ipu.elements.basis import element_basis
from pyscf_ipu.elements.symbols import SYMBOLS


@functools.cache
def atomic_density(number: int, basis: str, cart: bool) -> np.ndarray:
    """Density matrix [n, n] of a spherical free atom, in the AO order of `element_basis`."""
    order = element_basis(number, basis, cart).pyscf_order
    density = scf.hf.init_guess_by_atom(_atom(number, basis, cart))
    return np.asarray(density)[np.ix_(order, order)]


@functools.cache
def one_centre_integrals(number: int, basis: str, cart: bool) -> tuple[np.ndarray, ...]:
    """Overlap, kinetic energy and attraction by the own nucleus: three [n, n], Hartree."""
    order = element_basis(number, basis, cart).pyscf_order
    atom = _atom(number, basis, cart)
    return tuple(
        np.asarray(atom.intor(name))[np.ix_(order, order)]
        for name in ("int1e_ovlp", "int1e_kin", "int1e_nuc")
    )


def _atom(number: int, basis: str, cart: bool) -> gto.Mole:
    """A free atom for PySCF."""
    name = SYMBOLS[number]
    tables = {name: gto.basis.load(basis, name)}
    atom = [[name, (0.0, 0.0, 0.0)]]
    return gto.M(atom=atom, basis=tables, spin=number % 2, cart=cart, verbose=0)
