"""The auxiliary functions of an element: those that PySCF's `density_fit()` takes by default.

PySCF looks a set up by the name of the AO basis and the functional (one for Coulomb and exchange
for hybrids, one for Coulomb alone else), and makes even-tempered functions where it finds none
(`pyscf.df.addons`; F. Weigend, Phys. Chem. Chem. Phys. 4, 4285 (2002), doi:10.1039/b204199p).
A few AO basis sets have another one here (`SETS`).
"""

import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from jaxtyping import Float
from pyscf import gto
from pyscf.df import addons
from pyscf.dft import libxc

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.elements.basis import radial_functions
from pyscf_ipu.elements.basis_sets import ALL_ELECTRON, UNREADABLE, pyscf_basis, pyscf_ecp
from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS, SYMBOLS, plain_name

MAX_L = 6
"""i functions: with a pair of f shells, the highest order of derivatives in `codelets`."""

JFIT, JKFIT = "def2-universal-jfit", "def2-universal-jkfit"
"""F. Weigend, Phys. Chem. Chem. Phys. 8, 1057 (2006), doi:10.1039/b515623h, and J. Comput. Chem.
29, 167 (2008), doi:10.1002/jcc.20702."""
SETS: Mapping[str, tuple[str | None, str | None]] = MappingProxyType(
    {"def2mtzvp": (JFIT, None), "def2mtzvpp": (JFIT, None), "dzvp": (JKFIT, JKFIT)}
)
"""Auxiliary sets by AO basis (`plain_name`): without and with exact exchange; None for PySCF's.
Those of JFIT are PySCF's for the other def2 sets, and that of dzvp is Psi4's."""


@dataclass(frozen=True)
class AuxiliaryShell:
    """One contracted shell."""

    l: int
    exponents: Float[np.ndarray, " K"]
    """In 1/Bohr^2, the largest contribution first where PySCF has it so."""
    coefficients: Float[np.ndarray, " K"]
    """Of r^l exp(-a r^2), normalisation included."""


@functools.cache
def auxiliary_shells(number: int, basis: str, xc: str) -> tuple[AuxiliaryShell, ...]:
    """The shells of an element, by angular momentum, the deepest contraction first.

    Args:
        number: atomic number.
        basis: name of the AO basis.
        xc: the functional as PySCF calls it, "hf" for Hartree-Fock.

    Raises:
        InvalidMolecule: PySCF has no set for the element, or one beyond i shells.
    """
    name = SYMBOLS[number]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fit_mole = _pyscf_auxiliary(number, basis, xc)
    except UNREADABLE as error:
        raise InvalidMolecule(
            f"there is no auxiliary basis for {name} beside {basis!r}: use jk='exact', or another "
            "basis"
        ) from error
    shells = [radial_functions(fit_mole, i) for i in range(fit_mole.nbas)]
    if max(l for l, *_ in shells) > MAX_L:
        raise InvalidMolecule(
            f"the auxiliary basis of {name} beside {basis!r} has shells beyond i: use jk='exact', "
            "or another basis"
        )
    single = [AuxiliaryShell(l, a, c[:, i]) for l, a, c in shells for i in range(c.shape[1])]
    return tuple(sorted(single, key=lambda s: (s.l, -len(s.exponents))))


def pyscf_auxiliary_basis(mole: gto.Mole, basis: str, xc: str) -> dict[str, str | list] | None:
    """What PySCF's `density_fit` takes as its auxiliary basis; None for its own choice.

    An all-electron element beyond krypton, whose core electrons no named set fits, has PySCF's
    even-tempered functions.
    """
    name = auxiliary_set(basis, xc)
    if name is None:
        return None
    sets: dict[str, str | list] = {}
    for symbol in sorted({mole.atom_pure_symbol(i) for i in range(mole.natm)}):
        number = ATOMIC_NUMBERS[symbol]
        sets[symbol] = name
        if number > ALL_ELECTRON and not pyscf_ecp(basis, [number]):
            sets[symbol] = addons.make_auxbasis(_atom(number, basis))[symbol]
    return sets


def auxiliary_set(basis: str, xc: str) -> str | None:
    """The named set beside an AO basis, where it is not PySCF's choice."""
    return SETS.get(plain_name(basis), (None, None))[bool(libxc.is_hybrid_xc(xc))]


def _atom(number: int, basis: str) -> gto.Mole:
    return gto.M(
        atom=[[SYMBOLS[number], (0.0, 0.0, 0.0)]],
        basis=pyscf_basis(basis, [number]),
        ecp=pyscf_ecp(basis, [number]),
        spin=number % 2,
        verbose=0,
    )


def _pyscf_auxiliary(number: int, basis: str, xc: str) -> gto.Mole:
    """One atom with the auxiliary functions of `density_fit()`."""
    atom = _atom(number, basis)
    chosen = pyscf_auxiliary_basis(atom, basis, xc)
    if chosen is None and isinstance(atom.basis, str):
        chosen = addons.predefined_auxbasis(atom, atom.basis, xc)
    if isinstance(chosen, str):
        gto.basis.load(chosen, SYMBOLS[number])  # raises where `make_auxmol` would print, too
    return addons.make_auxmol(atom, chosen)
