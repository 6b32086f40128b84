"""The nonlocal correlation VV10 at one point: what a pair of points needs of each.

    E = sum_i w_i rho_i (beta + 1/2 sum_j w_j rho_j phi_ij),   phi_ij = -3 / (2 g h (g + h)),
    g = omega_i R_ij^2 + kappa_i,  h = omega_j R_ij^2 + kappa_j,
    omega = sqrt(C (|grad rho| / rho)^4 + 4 pi rho / 3),  kappa = 3 pi b / 2 (rho / 9 pi)^(1/6).

O. A. Vydrov, T. Van Voorhis, J. Chem. Phys. 133, 244103 (2010), doi:10.1063/1.3521275.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp

from pyscf_ipu.numerics.arrays import FloatG

LEAST_DENSITY = 1e-8
"""Electrons/Bohr^3; points of less are left out, as in PySCF."""
LEAST_ELECTRONS = 1e-9
"""Points with fewer are left out, too: a fifth of all, and 4e-9 Hartree of ethanol's energy."""


class VV10(NamedTuple):
    """The two parameters of one functional, without unit."""

    b: float
    C: float

    @property
    def beta(self) -> float:
        """The energy of an electron that sees nobody, Hartree; zero for the uniform gas."""
        return (3 / self.b**2) ** 0.75 / 32


class PointPairs(NamedTuple):
    """What pairs of points read of each point."""

    omega: FloatG
    kappa: FloatG
    electrons: FloatG  # weight times density; 0 where a point is left out


class PairSums(NamedTuple):
    """Over the other points, each times its electrons: phi and its derivatives by the own point."""

    phi: FloatG
    by_kappa: FloatG
    by_omega: FloatG


def point_pairs(vv10: VV10, rho: FloatG, sigma: FloatG, weights: FloatG) -> PointPairs:
    """Prepare every point.

    Args:
        vv10: the parameters.
        rho: the density, electrons/Bohr^3.
        sigma: |grad rho|^2.
        weights: Bohr^3.
    """
    counts = rho >= LEAST_DENSITY
    rho = jnp.where(counts, rho, 1.0)
    omega = jnp.sqrt(_gap(vv10, rho, sigma) + (4 * math.pi / 3) * rho)
    kappa = 1.5 * math.pi * vv10.b * (rho / (9 * math.pi)) ** (1 / 6)
    electrons = weights * rho  # negative on some Lebedev spheres
    counts = counts & (jnp.abs(electrons) >= LEAST_ELECTRONS)
    return PointPairs(omega, kappa, jnp.where(counts, electrons, 0.0))


def energy_and_potential(
    vv10: VV10, rho: FloatG, sigma: FloatG, points: PointPairs, sums: PairSums
) -> tuple[FloatG, FloatG, FloatG]:
    """Energy per volume (Hartree/Bohr^3), and the whole energy's derivatives by rho and sigma at
    each point, per volume; zero where a point is left out."""
    counts = points.electrons != 0
    safe = jnp.where(counts, rho, 1.0)
    gap = _gap(vv10, safe, sigma)
    # rho d(omega)/d(rho) and d(kappa)/d(rho), and rho d(omega)/d(sigma).
    omega_by_rho = ((2 * math.pi / 3) * safe - 2 * gap) / points.omega
    omega_by_sigma = vv10.C * sigma / safe**3 / points.omega
    by_rho = vv10.beta + sums.phi + sums.by_kappa * points.kappa / 6 + sums.by_omega * omega_by_rho
    values = (safe * (vv10.beta + 0.5 * sums.phi), by_rho, sums.by_omega * omega_by_sigma)
    energy, by_rho, by_sigma = (jnp.where(counts, x, 0.0) for x in values)
    return energy, by_rho, by_sigma


def _gap(vv10: VV10, rho: FloatG, sigma: FloatG) -> FloatG:
    """C (|grad rho| / rho)^4, the square of the local gap."""
    ratio = sigma / rho / rho
    return vv10.C * ratio * ratio
