"""Basis sets as tables: shells of one atom, SP shells fused, normalised, in float64 on the host.

PySCF supplies exponents and contraction coefficients.  A shell here is a set of primitives that
share exponents; it may carry several angular momenta (the SP shells of STO-3G and the Pople
sets) and several contractions (general contraction, e.g. cc-pVDZ).  Fusing lets a pair of SP
shells give 16 orbital products from one set of Boys functions.
"""

import functools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from pyscf import gto

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.elements.basis_sets import element_shells, supported_basis
from pyscf_ipu.elements.cartesian import Cart, is_cartesian
from pyscf_ipu.elements.spellings import MAX_ATOMIC_NUMBER, SYMBOLS


@dataclass(frozen=True)
class ShellKind:
    """The shape of a shell: what the compiled program depends on."""

    parts: tuple[tuple[int, int], ...]
    """(l, number of contractions) for each angular momentum, l ascending."""
    n_prim: int
    """Number of primitives."""
    cart: bool
    """Cartesian functions (6 d, 10 f) instead of spherical ones (5 d, 7 f)."""

    @property
    def ls(self) -> tuple[int, ...]:
        return tuple(l for l, _ in self.parts)

    @property
    def l_max(self) -> int:
        return max(self.ls)

    @property
    def components(self) -> tuple[tuple[int, int, int], ...]:
        """Cartesian powers (x, y, z) of every contracted cartesian function, in order."""
        return tuple(c for l, n in self.parts for _ in range(n) for c in cartesian_powers(l))

    @property
    def n_functions(self) -> int:
        return sum(n * n_spherical(l, self.cart) for l, n in self.parts)

    def transform(self) -> np.ndarray:
        """Contracted cartesian functions -> the shell's functions: [n_functions, n_components]."""
        blocks = [to_functions(l, self.cart) for l, n in self.parts for _ in range(n)]
        out = np.zeros((self.n_functions, len(self.components)))
        row = col = 0
        for block in blocks:
            out[row : row + block.shape[0], col : col + block.shape[1]] = block
            row, col = row + block.shape[0], col + block.shape[1]
        return out


@dataclass(frozen=True)
class ElementBasis:
    """One element's shells."""

    kinds: tuple[ShellKind, ...]
    exponents: tuple[Float[np.ndarray, " _"], ...]
    coefficients: tuple[Float[np.ndarray, "_ _"], ...]
    """[K, number of contracted radial functions] per shell, normalisation included."""
    pyscf_order: Int[np.ndarray, " n"]
    """Position in PySCF's atom-local AO order of each of our AOs."""

    @property
    def n_ao(self) -> int:
        return sum(k.n_functions for k in self.kinds)


def cartesian_powers(l: int) -> tuple[tuple[int, int, int], ...]:
    """(x, y, z) powers of total degree l, x descending: the order used by PySCF."""
    return tuple((x, y, l - x - y) for x in range(l, -1, -1) for y in range(l - x, -1, -1))


def n_spherical(l: int, cart: bool) -> int:
    return (l + 1) * (l + 2) // 2 if cart else 2 * l + 1


def to_functions(l: int, cart: bool) -> np.ndarray:
    """Cartesian powers -> functions of one l: [n_functions, n_cartesian], PySCF's conventions.

    The identity for s and p: their constant is part of the coefficients.
    """
    if cart or l < 2:
        return np.eye((l + 1) * (l + 2) // 2)
    return np.asarray(gto.cart2sph(l, normalized="sp")).T


@functools.cache
def element_basis(number: int, basis: str, cart: Cart) -> ElementBasis:
    """Tables of one element.

    Raises:
        InvalidMolecule: the basis has no entry for the element, or one beyond f shells.
        UnknownBasis: there is no such basis.
    """
    supported_basis(basis)
    if not 1 <= number <= MAX_ATOMIC_NUMBER:
        raise InvalidMolecule(
            f"element {number} is not supported: use H to Rn (1 to {MAX_ATOMIC_NUMBER})"
        )
    name = SYMBOLS[number]
    tables = {name: element_shells(basis, name)}
    atom = gto.M(atom=[[name, (0.0, 0.0, 0.0)]], basis=tables, spin=number % 2)
    raw = [radial_functions(atom, i) for i in range(atom.nbas)]
    return _assemble(_fuse(raw), raw, cart)


def radial_functions(atom: gto.Mole, i: int) -> tuple[int, np.ndarray, np.ndarray]:
    """(l, exponents [K], coefficients [K, contractions]) of r^l exp(-a r^2), normalised."""
    exponents = atom.bas_exp(i)
    l = int(atom.bas_angular(i))
    constant = np.sqrt((2 * l + 1) / (4 * np.pi)) if l < 2 else 1.0  # of the solid harmonic
    norm = constant * gto.gto_norm(l, exponents)
    return l, exponents, atom.bas_ctr_coeff(i) * norm[:, None]


def _fuse(raw: list) -> list[list[tuple[int, int, np.ndarray, np.ndarray]]]:
    """Group (shell index, l, exponents, coefficients) that share exponents into fused shells."""
    fused: list[list] = []
    for index, (l, exponents, coefficients) in enumerate(raw):
        for group in fused:
            free = l not in [part[1] for part in group]
            if free and l < 2 and np.array_equal(group[0][2], exponents):
                group.append((index, l, exponents, coefficients))
                break
        else:
            fused.append([(index, l, exponents, coefficients)])
    return fused


def _assemble(fused: list, raw: list, cart: Cart) -> ElementBasis:
    sizes = [c.shape[1] * n_spherical(l, is_cartesian(l, cart)) for l, _, c in raw]
    first_ao = np.concatenate([[0], np.cumsum(sizes)])
    kinds, exponents, coefficients, order = [], [], [], []
    for group in fused:
        parts = tuple((l, c.shape[1]) for _, l, _, c in group)
        highest = max(l for l, _ in parts)
        kinds.append(ShellKind(parts, len(group[0][2]), is_cartesian(highest, cart)))
        exponents.append(group[0][2])
        coefficients.append(np.concatenate([c for *_, c in group], axis=1))
        for index, *_ in group:
            order.extend(range(first_ao[index], first_ao[index + 1]))
    return ElementBasis(
        tuple(kinds), tuple(exponents), tuple(coefficients), pyscf_order=np.asarray(order, np.int64)
    )
