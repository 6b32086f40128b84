"""Cartesian d with spherical f functions in PySCF, whose molecules have one kind or the other.

A molecule of cartesian functions holds the mixed ones too: the ten functions x^3, x^2 y, ... of an
f shell combine to seven.  Its orbitals are kept in the space of these, so that PySCF's own
integrals, energies and gradients are those of the mixed functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from scipy import linalg

from pyscf_ipu.elements.basis import to_functions
from pyscf_ipu.elements.cartesian import MIXED, Cart, is_cartesian

if TYPE_CHECKING:
    from pyscf.gto import Mole

MeanField = Any
"""PySCF's mean-field objects: they get most of their attributes at run time."""


def mixed_functions(mole: Mole) -> Float[np.ndarray, "n m"]:
    """The m mixed functions of a molecule with cart=True, in terms of its n cartesian ones.

    Shells are in PySCF's order.
    """
    shells = [(mole.bas_angular(i), mole.bas_nctr(i)) for i in range(mole.nbas)]
    blocks = [to_functions(l, is_cartesian(l, MIXED)).T for l, n in shells for _ in range(n)]
    return np.asarray(linalg.block_diag(*blocks))


def functions_of(mole: Mole, cart: Cart) -> Float[np.ndarray, "n m"]:
    """The AOs that `cart` says in terms of those of PySCF's molecule: all of them, or the mixed."""
    return mixed_functions(mole) if cart == MIXED else np.eye(mole.nao)


def with_functions(field: MeanField, cart: Cart) -> MeanField:
    """A mean-field object of PySCF whose orbitals are made of the functions that `cart` says.

    Args:
        field: not yet computed; of a molecule with cart=`pyscf_cart(cart)`.
        cart: with MIXED the object is changed, else it is returned as it is.
    """
    if cart != MIXED:
        return field
    mole = field.mol
    functions = mixed_functions(mole)
    overlap = mole.intor("int1e_ovlp")
    inner = functions.T @ overlap @ functions
    onto = functions @ np.linalg.solve(inner, functions.T @ overlap)  # the projector

    def inside(matrix: np.ndarray) -> np.ndarray:
        return onto.T @ np.asarray(matrix) @ onto

    def eigh(h: np.ndarray, s: np.ndarray, *_: object, **__: object) -> tuple[np.ndarray, ...]:
        levels, orbitals = linalg.eigh(functions.T @ h @ functions, functions.T @ s @ functions)
        return levels, functions @ orbitals

    plain = field.get_fock

    def get_fock(
        h1e: Any = None, s1e: Any = None, vhf: Any = None, dm: Any = None, *rest: Any, **more: Any
    ) -> np.ndarray:
        """Without the part outside of the space, in which DIIS would see an error that stays."""
        h1e = field.get_hcore() if h1e is None else h1e
        vhf = field.get_veff(mole, dm) if vhf is None else vhf
        return plain(inside(h1e), s1e, inside(vhf), dm, *rest, **more)

    field.get_fock = get_fock
    if mole.symmetry:
        mole.symm_orb = [_span(onto @ orbitals) for orbitals in mole.symm_orb]
    else:
        field._eigh = eigh
    return field


def _span(vectors: np.ndarray) -> np.ndarray:
    """Orthonormal vectors with the span of the columns."""
    left, sizes, _ = np.linalg.svd(vectors, full_matrices=False)
    return left[:, sizes > 1e-6]
