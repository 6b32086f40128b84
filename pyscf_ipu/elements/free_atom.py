"""A free atom by PySCF: its density, and its integrals with its own nucleus."""

import functools

import numpy as np
from pyscf import gto, scf

from pyscf_ipu.elements.basis import element_basis
from pyscf_ipu.elements.basis_sets import basis_tables, pyscf_ecp
from pyscf_ipu.elements.cartesian import MIXED, Cart, pyscf_cart
from pyscf_ipu.elements.mixed import mixed_functions
from pyscf_ipu.elements.spellings import SYMBOLS


@functools.cache
def atomic_density(number: int, basis: str, cart: Cart) -> np.ndarray:
    """Density matrix [n, n] of a spherical free atom, in the AO order of `element_basis`."""
    order = element_basis(number, basis, cart).pyscf_order
    atom = _atom(number, basis, cart)
    density = np.asarray(scf.hf.init_guess_by_atom(atom))
    if cart == MIXED:
        # It is one of spherical functions, and of the mixed ones these are combinations.
        back = np.linalg.pinv(mixed_functions(atom))
        density = back @ density @ back.T
    return density[np.ix_(order, order)]


@functools.cache
def one_centre_integrals(number: int, basis: str, cart: Cart) -> tuple[np.ndarray, ...]:
    """Overlap, kinetic energy and attraction by the own nucleus: three [n, n], Hartree.

    A core potential takes its electrons off the charge of the nucleus, and is not part of these.
    """
    order = element_basis(number, basis, cart).pyscf_order
    atom = _atom(number, basis, cart)
    matrices = [np.asarray(atom.intor(f"int1e_{name}")) for name in ("ovlp", "kin", "nuc")]
    if cart == MIXED:
        functions = mixed_functions(atom)
        matrices = [functions.T @ x @ functions for x in matrices]
    return tuple(x[np.ix_(order, order)] for x in matrices)


def _atom(number: int, basis: str, cart: Cart) -> gto.Mole:
    """A free atom for PySCF."""
    atom = [[SYMBOLS[number], (0.0, 0.0, 0.0)]]
    return gto.M(
        atom=atom,
        basis=basis_tables(basis, [number]),
        ecp=pyscf_ecp(basis, [number]),
        spin=number % 2,
        cart=pyscf_cart(cart),
        verbose=0,
    )
