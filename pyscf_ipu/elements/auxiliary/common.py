"""The auxiliary set that the elements of a slot class share, and its Hermite coefficients.

An auxiliary function sits on a nucleus, so its expansion in Hermite Gaussians does not depend on
the geometry: it is a constant of the element, made here in float64 (McMurchie & Davidson 1978;
Helgaker, Jorgensen, Olsen, eq. 9.5.6-7 with one Gaussian).
"""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.elements.auxiliary.choice import AuxiliaryShell, auxiliary_shells
from pyscf_ipu.elements.basis import cartesian_powers, n_spherical, to_functions
from pyscf_ipu.elements.cartesian import Cart, pyscf_cart
from pyscf_ipu.numerics.hermite import SIDE_CONSTANT, hermite_powers, n_hermite


class AuxiliaryLevel(NamedTuple):
    """What decides an auxiliary basis beside the element."""

    basis: str
    cart: Cart
    xc: str
    """The functional as PySCF calls it."""


@dataclass(frozen=True)
class AuxiliaryKind:
    """The shape of an auxiliary shell: what a compiled program depends on."""

    l: int
    n_prim: int
    cart: bool
    """Cartesian functions, which PySCF takes wherever one of the AOs' shells has them."""

    @property
    def n_functions(self) -> int:
        return n_spherical(self.l, self.cart)


@functools.cache
def common_kinds(members: tuple[int, ...], level: AuxiliaryLevel) -> tuple[AuxiliaryKind, ...]:
    """Shells in which those of every member find a place, each the n-th of its l.

    Those of one l are as deep as the deepest: one kind, so that programs are short.  Members
    without a set that can be used have no part in it.
    """
    cart = pyscf_cart(level.cart)
    shells = [_shells_or_none(z, level) for z in members]
    kinds_of_all = []
    for l in sorted({s.l for own in shells for s in own}):
        depths = [[len(s.exponents) for s in own if s.l == l] for own in shells]
        kind = AuxiliaryKind(l, max(d for own in depths for d in own), cart)
        kinds_of_all += [kind] * max(map(len, depths))
    return tuple(kinds_of_all)


def in_common(
    number: int, kinds: tuple[AuxiliaryKind, ...], level: AuxiliaryLevel
) -> list[AuxiliaryShell]:
    """An element's shells in a common set: coefficients are 0 where it has none."""
    own = _shells_or_none(number, level)
    by_l = {l: iter([s for s in own if s.l == l]) for l in {kind.l for kind in kinds}}
    common = []
    for kind in kinds:
        shell = next(by_l[kind.l], None)
        exponents, coefficients = np.ones(kind.n_prim), np.zeros(kind.n_prim)
        if shell is not None:
            exponents[: len(shell.exponents)] = shell.exponents
            coefficients[: len(shell.exponents)] = shell.coefficients
        common.append(AuxiliaryShell(kind.l, exponents, coefficients))
    return common


def _shells_or_none(number: int, level: AuxiliaryLevel) -> tuple[AuxiliaryShell, ...]:
    try:
        return auxiliary_shells(number, level.basis, level.xc)
    except InvalidMolecule:  # molecules with the element are refused before they get here
        return ()


def hermite_coefficients(shell: AuxiliaryShell, cart: bool) -> Float[np.ndarray, "K f h"]:
    """E of every function of a shell, with the factor SIDE_CONSTANT over the exponent."""
    return np.stack(
        [
            c * SIDE_CONSTANT / a * (to_functions(shell.l, cart) @ _cartesian(shell.l, a))
            for a, c in zip(shell.exponents, shell.coefficients, strict=True)
        ]
    )


def _cartesian(l: int, exponent: float) -> Float[np.ndarray, "c h"]:
    """E_tuv of x^i y^j z^k exp(-a r^2) for i + j + k = l."""
    table = np.zeros((l + 1, l + 2))  # [i, t]
    table[0, 0] = 1.0
    for i in range(l):
        for t in range(i + 2):
            lower = table[i, t - 1] / (2.0 * exponent) if t else 0.0
            table[i + 1, t] = lower + (t + 1) * table[i, t + 1]
    out = np.zeros((len(cartesian_powers(l)), n_hermite(l)))
    for row, powers in enumerate(cartesian_powers(l)):
        for column, h in enumerate(hermite_powers(l)):
            out[row, column] = math.prod(table[i, t] for i, t in zip(powers, h, strict=True))
    return out
