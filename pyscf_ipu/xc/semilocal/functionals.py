"""A density functional as data: a sum of weighted terms, with potentials by autodiff."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.numerics.two_words import split
from pyscf_ipu.xc.semilocal.unrolled import unrolled
from pyscf_ipu.xc.semilocal.variables import Spins, Variables, variables, variables_of_spins
from pyscf_ipu.xc.semilocal.vv10 import VV10
from pyscf_ipu.xc.suffixes.names import Dispersion

Energy = Callable[[Variables], Float[Array, "*grid"]]
"""Hartree per electron at every grid point."""


class Term(NamedTuple):
    """One summand of a functional.

    Exchange is written for closed shells only.  Of two spins it is that of either, exactly half of
    the exchange of a closed shell of twice the density: G. L. Oliver, J. P. Perdew, Phys. Rev. A
    20, 397 (1979), doi:10.1103/PhysRevA.20.397.  A correlation reads `Variables.spins`; so does an
    energy that is both.
    """

    coefficient: float
    energy_per_electron: Energy
    part: Literal["exchange", "correlation", "both"]

    def of_spins(
        self, density: Float[Array, "*grid"], v: Variables, spins: Spins
    ) -> Float[Array, "*grid"]:
        """Hartree/Bohr^3 of two spin densities, without the coefficient."""
        if self.part == "exchange":
            return (spins.density * self.energy_per_electron(spins.each)).sum(0)
        return density * self.energy_per_electron(v)


@dataclass(frozen=True)
class Functional:
    """An exchange-correlation functional of a density.  Hashable, so static to jit.

    Attributes:
        name: the name users type.
        kind: highest ingredient: nothing ("hf"), the density ("lda"), its gradient ("gga") or the
            kinetic energy density ("mgga").
        exact_exchange: fraction of Hartree-Fock exchange that the caller has to add.
        definition: the functional spelled out in libxc ids, to be written into every output.
        pyscf_name: what ``mf.xc`` has to be for PySCF to compute the same functional.
        terms: the semilocal part; empty for Hartree-Fock, which makes every result zero.
        long_range_exchange: fraction of the exchange of erf(omega r)/r that the caller adds beside
            `exact_exchange`; negative where exchange is screened.
        omega: of the error function, in 1/Bohr.
        vv10: the parameters of the nonlocal correlation, which is not among the terms.
        dispersion: a correction that is added on the host; programs do not depend on it.
    """

    name: str
    kind: Literal["hf", "lda", "gga", "mgga"]
    exact_exchange: float
    definition: str
    pyscf_name: str
    terms: tuple[Term, ...]
    long_range_exchange: float = 0.0
    omega: float = 0.0
    vv10: VV10 | None = None
    dispersion: Dispersion | None = None

    @property
    def exchange(self) -> Interaction:
        """By which electrons interact in the exact exchange, its fractions included."""
        return Interaction(self.exact_exchange, self.long_range_exchange, self.omega)

    @property
    def needs_gradient(self) -> bool:
        """Whether it depends on the gradients of the orbitals."""
        return self.kind in ("gga", "mgga")

    @property
    def needs_tau(self) -> bool:
        """Whether it depends on the kinetic energy density."""
        return self.kind == "mgga"

    @property
    def of_gradient(self) -> "Functional":
        """A functional of the density and its gradient, which is all that VV10 reads."""
        return replace(self, kind="gga", terms=())

    def energy_density(
        self,
        rho: Float[Array, "*grid"],
        sigma: Float[Array, "*grid"],
        tau: Float[Array, "*grid"] | None = None,
    ) -> Float[Array, "*grid"]:
        """Exchange-correlation energy per volume in Hartree/Bohr^3.

        Args:
            rho: total density in electrons/Bohr^3, any shape.
            sigma: |grad rho|^2 in atomic units, same shape and dtype; ignored by "lda" and "hf".
            tau: sum over electrons of |grad psi|^2 / 2, same shape and dtype; for "mgga".

        Raises:
            TypeError: if the arrays are not all float32 or all float64, or tau is missing.
        """
        density, v = variables(rho, sigma, tau)
        return density * self._sum([term.energy_per_electron(v) for term in self.terms], rho)

    def energy_density_of_spins(
        self,
        rho: Float[Array, "spin=2 *grid"],
        sigma: Float[Array, "pair=3 *grid"],
        tau: Float[Array, "spin=2 *grid"] | None = None,
    ) -> Float[Array, "*grid"]:
        """Exchange-correlation energy per volume of two spin densities in Hartree/Bohr^3.

        Args:
            rho: densities of alpha and beta electrons in electrons/Bohr^3.
            sigma: grad rho_s . grad rho_s' for alpha alpha, alpha beta and beta beta in atomic
                units, same dtype; ignored by "lda" and "hf".
            tau: sum over the electrons of either spin of |grad psi|^2 / 2, same dtype; for "mgga".

        Raises:
            TypeError: if the arrays are not all float32 or all float64, or tau is missing.
        """
        density, v = variables_of_spins(rho, sigma, tau)
        assert v.spins is not None
        return self._sum([term.of_spins(density, v, v.spins) for term in self.terms], density)

    def _sum(
        self, energies: list[Float[Array, "*grid"]], like: Float[Array, "*grid"]
    ) -> Float[Array, "*grid"]:
        """The weighted sum of the terms' energies.

        Coefficients are in two words: rounded to float32, B3LYP's are 0.04 meV for nine heavy
        atoms, always of one sign.  The second words come first, and exchange last, since a number
        is lost where it is added to one that is 2^25 times as large.
        """
        coefficients = [split(np.asarray(term.coefficient), like.dtype) for term in self.terms]
        total = jnp.zeros_like(like)
        for word in (1, 0):
            for words, energy in zip(reversed(coefficients), reversed(energies), strict=True):
                total = total + words[word] * energy
        return total

    def energy_and_potential(
        self,
        rho: Float[Array, "*grid"],
        sigma: Float[Array, "*grid"],
        tau: Float[Array, "*grid"] | None = None,
    ) -> tuple[Float[Array, "*grid"], ...]:
        """Energy density e and its derivatives (e, de/drho, de/dsigma), point by point.

        With tau there is a fourth, de/dtau.  e depends on its own point only, so pulling a vector
        of ones back gives all derivatives in one pass.  Shapes, units and errors as in
        :meth:`energy_density`; all derivatives are zero at empty points, and de/dsigma is zero
        everywhere for "lda" and "hf".
        """
        ingredients = (rho, sigma) if tau is None else (rho, sigma, tau)
        energy, pull_back = jax.vjp(self.energy_density, *ingredients)
        return energy, *pull_back(jnp.ones_like(energy))

    def energy_and_potential_of_spins(
        self,
        rho: Float[Array, "spin=2 *grid"],
        sigma: Float[Array, "pair=3 *grid"],
        tau: Float[Array, "spin=2 *grid"] | None = None,
    ) -> tuple[Float[Array, "..."], ...]:
        """Energy density e [*grid], and its derivatives by rho [2, *grid] and sigma [3, *grid].

        With tau there is a fourth, de/dtau [2, *grid].  The derivative by sigma alpha beta is that
        by one variable, which occurs twice in |grad rho|^2.  Where only one spin is empty, its
        de/drho is what the other's correlation says; the parts that have no limit there, or none
        that is finite, are zero, as libxc's are below its thresholds.  Shapes, units and errors as
        in :meth:`energy_density_of_spins`; all derivatives are zero at empty points.
        """
        ingredients = (rho, sigma) if tau is None else (rho, sigma, tau)
        energy, pull_back = jax.vjp(self.energy_density_of_spins, *ingredients)
        return energy, *pull_back(jnp.ones_like(energy))


def energy_and_slopes(
    functional: Functional, moments: Float[Array, "spin=2 V G"]
) -> tuple[Float[Array, " G"], Float[Array, "spin=2 V G"]]:
    """Energy per volume in Hartree/Bohr^3, and its derivatives by the moments.

    Args:
        functional: of exchange and correlation.
        moments: of either spin: density, its gradient and, where the functional needs it, the
            kinetic energy density, in atomic units.
    """
    return unrolled(partial(_of_point, functional))(moments)


def _of_point(
    functional: Functional, moments: Float[Array, "spin=2 V"]
) -> tuple[Float[Array, ""], Float[Array, "spin=2 V"]]:
    """Energy and derivatives at one point."""
    slope = moments[:, 1:4]
    pairs = [(slope[i] * slope[j]).sum(0) for i, j in ((0, 0), (0, 1), (1, 1))]
    tau = (moments[:, 4],) if functional.needs_tau else ()
    energy, v_rho, v_sigma, *v_tau = functional.energy_and_potential_of_spins(
        moments[:, 0], jnp.stack(pairs), *tau
    )
    by_slope = [
        2.0 * v_sigma[2 * spin] * slope[spin] + v_sigma[1] * slope[1 - spin] for spin in (0, 1)
    ]
    of_each = [
        jnp.stack([v_rho[spin], *by_slope[spin], *(v[spin] for v in v_tau)]) for spin in (0, 1)
    ]
    return energy, jnp.stack(of_each)
