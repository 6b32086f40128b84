"""Basis sets and their core potentials by name: PySCF's tables.

The shells differ from PySCF's where these are not what a name means elsewhere.
"""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from pyscf import gto
from pyscf.data.elements import CONFIGURATION

from pyscf_ipu.base.errors import InvalidMolecule, UnknownBasis
from pyscf_ipu.base.nearest import did_you_mean
from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS, SYMBOLS, plain_name

Entry = TypeVar("Entry")
Shells = list
"""Shells of one element as PySCF has them: [l, [exponent, coefficient, ...], ...] each."""
Potential = list
"""A core potential as PySCF has it: the number of core electrons, and terms by l."""

ALL_ELECTRON = 36
"""Up to krypton all electrons are computed, also where a set has a core potential."""
MAX_L = 3
FAR, RATHER_FAR = 0.11, 0.14
"""1/Bohr^2: 6-31G* and def2-SVP have 0.17 and 0.13, def2-TZVP and 6-31+G* 0.095 and 0.044."""
UNREADABLE = (KeyError, RuntimeError, ValueError, OSError, TypeError)
"""What PySCF raises where it has no table: also for a name that it takes for a file's."""
_ALLOWED = (
    "use a PySCF basis name with s, p, d and f shells, "
    "for example sto-3g, 6-31g, 6-31g*, def2-svp, def2-tzvp or cc-pvdz"
)

_PSEUDO = ("gth", "ccecp", "bfd", "crenb", "stuttgart", "sbkjc")
"""Beginnings of names of sets that are meant for pseudopotentials, also of light elements."""

QM9_BASIS = "6-31g(2df,p)"
"""In PySCF and the Basis Set Exchange it has the d shells of 6-311G(2df,p)."""
_QM9_ELEMENTS = ("H", "C", "N", "O", "F")
_QM9_D = (1.6, 0.4)
"""Gaussian splits the one d exponent of 6-31G*, 0.8, by 2 and 1/2, as M. J. Frisch, J. A. Pople and
J. S. Binkley do in 6-311G's (J. Chem. Phys. 80, 3265 (1984), doi:10.1063/1.447079)."""


@functools.cache
def supported_basis(basis: str) -> str:
    """The name itself, if PySCF has the set for carbon.

    Raises:
        UnknownBasis: PySCF does not have it, or it has shells beyond f.
    """
    try:
        shells = basis_entry(basis, "C")
    except UNREADABLE as error:
        meant = did_you_mean(plain_name(basis), gto.basis.ALIAS)
        raise UnknownBasis(f"unknown basis {basis!r}{meant}: {_ALLOWED}") from error
    if max(shell[0] for shell in shells) > MAX_L:
        raise UnknownBasis(f"basis {basis!r} has shells beyond f: {_ALLOWED}")
    return basis


@functools.cache
def has_d(basis: str) -> bool:
    """Whether carbon has functions beyond p; False if there is no such set."""
    try:
        return highest(basis, "C") > 1
    except UnknownBasis:
        return False


@functools.cache
def reaches_far(basis: str, below: float = FAR) -> bool:
    """Whether carbon has functions with exponents below a limit; False if there is no such set.

    Those of neighbours are nearly dependent: the smallest eigenvalue of S is often below 1e-3, and
    up to `RATHER_FAR` in aromatic rings.
    """
    try:
        shells = basis_entry(supported_basis(basis), "C")
    except UnknownBasis:
        return False
    # Some sets state kappa, a number, before the primitives of a shell.
    primitives = (one for shell in shells for one in shell[1:] if not isinstance(one, int))
    return min(one[0] for one in primitives) < below


def highest(basis: str, symbol: str) -> int:
    """The highest angular momentum of an element's shells in a set, 2 for d."""
    return max(shell[0] for shell in basis_entry(supported_basis(basis), symbol))


def element_shells(basis: str, name: str) -> Shells:
    """The shells of an element of a supported set.

    Raises:
        InvalidMolecule: the set lacks the element, replaces core electrons of one up to krypton,
            has neither these electrons nor a potential for a heavier one, or has shells beyond f.
    """
    number, potential = ATOMIC_NUMBERS[name], core_potential(basis, name)
    if basis.lower().startswith(_PSEUDO) or (potential and number <= ALL_ELECTRON):
        raise InvalidMolecule(
            f"basis {basis!r} replaces core electrons of {name} by a potential, as is computed for "
            "Rb to Rn alone, with def2's sets above all: use an all-electron basis"
        )
    if is_qm9(basis) and name not in _QM9_ELEMENTS:
        raise InvalidMolecule(
            f"basis {basis!r} is QM9's, as Gaussian has it, for H, C, N, O and F: there is no "
            f"such set for {name}; choose another basis or leave it out"
        )
    try:
        shells = basis_entry(basis, name)
    except UNREADABLE as error:
        raise InvalidMolecule(
            f"basis {basis!r} has no functions for {name}: choose another basis or leave it out"
        ) from error
    if max(shell[0] for shell in shells) > MAX_L:
        raise InvalidMolecule(f"basis {basis!r} has shells beyond f for {name}: {_ALLOWED}")
    if number > ALL_ELECTRON and not potential and not _holds_core(shells, basis, number):
        raise InvalidMolecule(
            f"basis {basis!r} has no functions for the core electrons of {name}, and PySCF has no "
            "potential for them by this name: choose another basis or leave it out"
        )
    return shells


@functools.cache
def core_potential(basis: str, name: str) -> Potential | None:
    """The effective core potential of an element in a set; None if all electrons are computed.

    All of def2's sets have the same potentials (D. Andrae, U. Haussermann, M. Dolg, H. Stoll,
    H. Preuss, Theor. Chim. Acta 77, 123 (1990), doi:10.1007/BF01114537, and later ones).
    """
    try:
        return _quietly(gto.basis.load_ecp, "def2-svp" if _is_def2(basis) else basis, name) or None
    except UNREADABLE:  # PySCF has no such potential
        return None


def core_electrons(basis: str, number: int) -> int:
    """How many electrons of an element a set replaces by a potential."""
    return (core_potential(basis, SYMBOLS[number]) or [0])[0]


def pyscf_ecp(basis: str, numbers: Sequence[int] | np.ndarray) -> dict[str, Potential]:
    """What PySCF's Mole takes as its `ecp`: potentials by symbol, none where all are electrons."""
    potentials = {s: core_potential(basis, s) for s in {SYMBOLS[int(z)] for z in numbers}}
    return {symbol: potential for symbol, potential in potentials.items() if potential}


def _holds_core(shells: Shells, basis: str, number: int) -> bool:
    """Whether a set has functions for all electrons: a steep 1s, and one for every filled shell."""
    if _is_def2(basis):
        return False
    rows = {l: [shell[1:] for shell in shells if shell[0] == l] for l in range(MAX_L + 1)}
    contracted = [sum(len(primitives[0]) - 1 for primitives in rows[l]) for l in rows]
    needed = [-(-n // (4 * l + 2)) for l, n in enumerate(CONFIGURATION[number])]
    steepest = max((primitive[0] for shell in rows[0] for primitive in shell), default=0.0)
    return steepest > number**2 and all(a >= b for a, b in zip(contracted, needed, strict=True))


def pyscf_basis(basis: str, numbers: Sequence[int] | np.ndarray) -> str | dict[str, Shells]:
    """What PySCF's Mole takes as its basis: the name, or tables where PySCF has others by it."""
    return basis_tables(basis, numbers) if is_qm9(basis) else basis


def basis_tables(basis: str, numbers: Sequence[int] | np.ndarray) -> dict[str, Shells]:
    """The shells of several elements by symbol."""
    return {SYMBOLS[z]: element_shells(basis, SYMBOLS[z]) for z in sorted(set(map(int, numbers)))}


def basis_entry(basis: str, name: str) -> Shells:
    """The table of one element; what PySCF raises where it has none."""
    shells = _quietly(gto.basis.load, basis, name)
    if not is_qm9(basis):
        return shells
    split = [[2, [exponent, 1.0]] for exponent in _QM9_D]
    at = [i for i, shell in enumerate(shells) if shell[0] == 2]
    return [*shells[: at[0]], *split, *shells[at[-1] + 1 :]] if at else shells


def _is_def2(basis: str) -> bool:
    """Whether this is one of Karlsruhe's def2 sets, such as ma-def2-SVP."""
    return "def2" in plain_name(basis)


def is_qm9(basis: str) -> bool:
    """Whether this is QM9_BASIS, in any spelling."""
    return plain_name(basis) == plain_name(QM9_BASIS)


def _quietly(load: Callable[[str, str], Entry], basis: str, name: str) -> Entry:
    """PySCF's entry for an element; where it has none, its advice on packages is not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return load(basis, name)
