"""Dimensionless variables of a density, of closed shells or of two spins, safe where it vanishes.

All functionals of this package are written in the cube root of the density and in the squared
reduced gradient.  Both stay representable in float32 where products such as ``rho**(8/3)`` would
underflow, and the guards against empty space live in this one place: the formulas themselves
contain no branch.  Atomic units throughout.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pyscf_ipu.xc.semilocal.elementary import cbrt, eighth_power

RS_OVER_INVERSE_CBRT = (3 / (4 * math.pi)) ** (1 / 3)
"""r_s rho^(1/3): the Wigner-Seitz radius is this constant over the cube root of the density."""

LARGEST_X2 = 1e14
"""Cap on sigma / rho^(8/3).

A density that decays as exp(-2 a r) has x^2 = 4 a^2 / rho^(2/3), below 1e12 at every density above
the float64 cutoff, so only meaningless input (rho = 1e-12 with sigma = 1) meets the cap.
"""


LEAST_T, LARGEST_T = 1e-7, 1e14
"""Bounds of tau / rho^(5/3).

A bond's midpoint comes close to zero where one orbital holds all electrons, and a density that
decays as above has a^2 / (2 rho^(2/3)), as far below the upper bound as x^2 is.
"""


class Variables(NamedTuple):
    """What an energy per electron may depend on, one value per grid point."""

    cbrt: Float[Array, "*grid"]  # rho^(1/3) in 1/Bohr, strictly positive
    x2: Float[Array, "*grid"]  # sigma / rho^(8/3), dimensionless, in [0, LARGEST_X2]
    t: Float[Array, "*grid"] | None = None  # tau / rho^(5/3), dimensionless, at least x2 / 8
    spins: "Spins | None" = None  # None for closed shells

    @property
    def kinetic(self) -> Float[Array, "*grid"]:
        """tau / rho^(5/3), dimensionless.

        Raises:
            TypeError: the functional was called without tau.
        """
        if self.t is None:
            raise TypeError("this functional depends on the kinetic energy density: give tau")
        return self.t

    @property
    def rs(self) -> Float[Array, "*grid"]:
        """Wigner-Seitz radius (3 / (4 pi rho))^(1/3) in Bohr."""
        return RS_OVER_INVERSE_CBRT / self.cbrt

    @property
    def each(self) -> "Variables":
        """Variables of either spin, as of a closed shell of twice its density, [2, *grid].

        In closed shells both are the whole, without the first axis.
        """
        return self if self.spins is None else self.spins.each

    @property
    def opposite(self) -> "Variables":
        """Variables for electrons of opposite spin: the means of both spins' x^2 and 1/t."""
        if self.spins is None:
            return self
        _, (a, b), t, _ = self.spins.each
        t = None if t is None else 2 * t[0] * (t[1] / (t[0] + t[1]))
        return Variables(self.cbrt, (a + b) / 2, t)

    def average(self, energies: Float[Array, "..."]) -> Float[Array, "*grid"]:
        """Average over electrons of a value of either spin; in closed shells the value itself."""
        return energies if self.spins is None else (self.spins.share * energies).sum(0)

    def mean_power(self, thirds: int) -> Float[Array, "*grid"] | float:
        """Mean of (1 + zeta)^(thirds/3) and (1 - zeta)^(thirds/3); 1.0 in closed shells."""
        if self.spins is None:
            return 1.0
        a, b = self.spins.root**thirds
        return (a + b) / 2


class Spins(NamedTuple):
    """What else an energy of two spin densities may depend on; alpha first.

    The polarisation is zeta = (rho_alpha - rho_beta) / rho.
    """

    each: Variables  # [2, *grid], of twice the density of one spin; its `spins` is None
    density: Float[Array, "spin=2 *grid"]  # electrons/Bohr^3, zero where the spin is empty
    share: Float[Array, "spin=2 *grid"]  # of all electrons: (1 + zeta) / 2 and (1 - zeta) / 2
    root: Float[Array, "spin=2 *grid"]  # (1 + zeta)^(1/3), (1 - zeta)^(1/3); zero where empty
    cross: Float[Array, "*grid"]  # 4 sigma_ab / (4 rho_a rho_b)^(4/3), as x2 of `each` for sigma_aa

    @property
    def zeta(self) -> Float[Array, "*grid"]:
        """The polarisation, -1 to 1."""
        return self.share[0] - self.share[1]

    @property
    def interpolation(self) -> Float[Array, "*grid"]:
        """f(zeta) of the uniform gas, from zero to one.

        U. von Barth, L. Hedin, J. Phys. C 5, 1629 (1972),
        doi:10.1088/0022-3719/5/13/012.
        """
        a, b = self.root**4
        return (a + b - 2) / (2 ** (4 / 3) - 2)


def density_cutoff(dtype: jnp.dtype) -> float:
    """Density in electrons/Bohr^3 at and below which a point counts as empty.

    The integral of |e_xc| over the tail below 1e-11 is under 1e-9 Ha for a molecule, and
    ``rho**(-8/3)`` of 1e-11 is still far from the largest float32.

    Raises:
        TypeError: if ``dtype`` is neither float32 nor float64.
    """
    cutoffs = {jnp.dtype("float32"): 1e-11, jnp.dtype("float64"): 1e-15}
    if jnp.dtype(dtype) not in cutoffs:
        raise TypeError(f"densities must be float32 or float64, got {dtype}: convert them first")
    return cutoffs[jnp.dtype(dtype)]


def variables(
    rho: Float[Array, "*grid"],
    sigma: Float[Array, "*grid"],
    tau: Float[Array, "*grid"] | None = None,
) -> tuple[Float[Array, "*grid"], Variables]:
    """Density and dimensionless variables with empty points replaced by a harmless density.

    Args:
        rho: total density in electrons/Bohr^3, any shape; may be slightly negative from rounding.
        sigma: |grad rho|^2 in atomic units, same shape.
        tau: sum over electrons of |grad psi|^2 / 2 in atomic units, same shape, where it is needed.

    Returns:
        The density with zero (and zero derivative) at empty points, and the variables.  A NaN
        input is passed on, never taken for empty space.

    Raises:
        TypeError: if the arrays are not both float32 or both float64.
    """
    for name, other in (("sigma", sigma), ("tau", tau)):
        if other is not None and rho.dtype != other.dtype:
            raise TypeError(f"rho is {rho.dtype} but {name} is {other.dtype}: give both one dtype")
    empty = rho <= density_cutoff(rho.dtype)
    # Double where: the inner one keeps infinities out of the derivative of the unused branch.
    root = cbrt(jnp.where(empty, 1.0, rho))
    inverse = 1 / root
    scale = eighth_power(inverse)
    capped = sigma * scale > LARGEST_X2
    dropped = empty | (sigma < 0) | capped
    x2 = jnp.where(capped & ~empty, LARGEST_X2, jnp.where(dropped, 0.0, sigma) * scale)
    density = jnp.where(empty, 0.0, rho)
    if tau is None:
        return density, Variables(root, x2)
    t = _reduced_tau(tau, inverse, empty)
    return density, Variables(root, _not_beyond(x2, 8 * t), t)


def _reduced_tau(
    tau: Float[Array, "*grid"], inverse: Float[Array, "*grid"], empty: Bool[Array, "*grid"]
) -> Float[Array, "*grid"]:
    """tau / rho^(5/3) within its bounds; there, and at empty points, without derivative."""
    square = inverse * inverse
    scale = square * square * inverse
    high = tau * scale > LARGEST_T
    low = tau * scale < LEAST_T
    inside = jnp.where(low | high | empty, 0.0, tau) * scale
    return jnp.where(high & ~empty, LARGEST_T, jnp.where(low | empty, LEAST_T, inside))


@jax.custom_jvp
def _not_beyond(x: Float[Array, "*grid"], bound: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """The smaller one, with the derivative of `x` where it is not far beyond.

    sigma / (8 rho) equals tau where one orbital holds all electrons: there rounding decides which
    is smaller, and a derivative that depended on it would jump from point to point.
    """
    return jnp.minimum(x, bound)


@_not_beyond.defjvp
def _not_beyond_jvp(primals, tangents):
    (x, bound), (dx, _) = primals, tangents
    return _not_beyond(x, bound), jnp.where(x > 2 * bound, 0.0, dx)


def variables_of_spins(
    rho: Float[Array, "spin=2 *grid"],
    sigma: Float[Array, "pair=3 *grid"],
    tau: Float[Array, "spin=2 *grid"] | None = None,
) -> tuple[Float[Array, "*grid"], Variables]:
    """Total density and dimensionless variables of two spin densities, guarded as `variables` does.

    Args:
        rho: density of alpha and beta electrons, electrons/Bohr^3; may be slightly negative.
        sigma: grad rho_s . grad rho_s' in atomic units: alpha alpha, alpha beta, beta beta.
        tau: sum over the electrons of a spin of |grad psi|^2 / 2, where it is needed.

    Returns:
        The total density, zero (with zero derivative) at empty points, and the variables.  A spin
        that is empty alone has no `density` and no `root`; its share keeps its derivative, which is
        the one of the other spin's correlation.

    Raises:
        TypeError: if the arrays are not all float32 or all float64.
    """
    rho = jnp.where(rho < 0, 0.0, rho)
    aa, ab, bb = sigma
    # In this order no two infinities of opposite sign can meet.
    whole = (rho[0] + rho[1], (aa + ab) + (ab + bb), None if tau is None else tau[0] + tau[1])
    total, of_all = variables(*whole)
    doubled, each = variables(2 * rho, 4 * jnp.stack([aa, bb]), None if tau is None else 2 * tau)
    nothing = total == 0
    empty = (doubled == 0) | nothing
    density = jnp.where(empty, 0.0, 0.5 * doubled)
    share = rho / jnp.where(nothing, 1.0, total)
    root = jnp.where(nothing, 1.0, jnp.where(empty, 0.0, each.cbrt) / of_all.cbrt)
    spins = Spins(each, density, share, root=root, cross=_cross(ab, each, empty))
    return total, of_all._replace(spins=spins)


def _cross(
    ab: Float[Array, "*grid"], each: Variables, empty: Bool[Array, "spin=2 *grid"]
) -> Float[Array, "*grid"]:
    """The gradients' product in units of both densities; zero where two cannot have that much."""
    inverse = 1 / each.cbrt
    square = inverse * inverse
    scale = square * square
    limit = each.x2[0] + each.x2[1]  # twice the largest possible
    beyond = jnp.abs(4 * ab * scale[0] * scale[1]) > limit
    inside = jnp.where(beyond | empty[0] | empty[1], 0.0, ab)
    return 4 * inside * scale[0] * scale[1]
