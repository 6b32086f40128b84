"""A density functional as data: a sum of weighted terms, with potentials by autodiff."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pyscf_ipu.suffixes.names import Dispersion
from pyscf_ipu.xc.interaction import Interaction
from pyscf_ipu.xc.variables import Variables, variables

Energy = Callable[[Variables], Float[Array, "*grid"]]
"""Hartree per electron at every grid point."""


class Term(NamedTuple):
    """One summand of a functional."""

    coefficient: float
    energy_per_electron: Energy


@dataclass(frozen=True)
class Functional:
    """An exchange-correlation functional of a closed-shell density.  Hashable, so static to jit.

    Attributes:
        name: the name users type.
        kind: highest ingredient: nothing ("hf"), the density ("lda") or its gradient ("gga").
        exact_exchange: fraction of Hartree-Fock exchange that the caller has to add.
        definition: the functional spelled out in libxc ids, to be written into every output.
        pyscf_name: what ``mf.xc`` has to be for PySCF to compute the same functional.
        terms: the semilocal part; empty for Hartree-Fock, which makes every result zero.
        long_range_exchange: fraction of the exchange of erf(omega r)/r that the caller adds beside
            `exact_exchange`; negative where exchange is screened.
        omega: of the error function, in 1/Bohr.
        dispersion: a correction that is added on the host; programs do not depend on it.
    """

    name: str
    kind: Literal["hf", "lda", "gga"]
    exact_exchange: float
    definition: str
    pyscf_name: str
    terms: tuple[Term, ...]
    long_range_exchange: float = 0.0
    omega: float = 0.0
    dispersion: Dispersion | None = None

    @property
    def exchange(self) -> Interaction:
        """By which electrons interact in the exact exchange, its fractions included."""
        return Interaction(self.exact_exchange, self.long_range_exchange, self.omega)

    def energy_density(
        self, rho: Float[Array, "*grid"], sigma: Float[Array, "*grid"]
    ) -> Float[Array, "*grid"]:
        """Exchange-correlation energy per volume in Hartree/Bohr^3.

        Args:
            rho: total density in electrons/Bohr^3, any shape.
            sigma: |grad rho|^2 in atomic units, same shape and dtype; ignored unless kind is "gga".

        Raises:
            TypeError: if the arrays are not both float32 or both float64.
        """
        density, v = variables(rho, sigma)
        per_electron = jnp.zeros_like(rho)
        for coefficient, energy_per_electron in self.terms:
            per_electron = per_electron + coefficient * energy_per_electron(v)
        return density * per_electron

    def energy_and_potential(
        self, rho: Float[Array, "*grid"], sigma: Float[Array, "*grid"]
    ) -> tuple[Float[Array, "*grid"], Float[Array, "*grid"], Float[Array, "*grid"]]:
        """Energy density e and its derivatives (e, de/drho, de/dsigma), point by point.

        e depends on its own point only, so pulling a vector of ones back gives all derivatives in
        one pass.  Shapes, units and errors as in :meth:`energy_density`; both derivatives are zero
        at empty points, and de/dsigma is zero everywhere for "lda" and "hf".
        """
        energy, pull_back = jax.vjp(self.energy_density, rho, sigma)
        v_rho, v_sigma = pull_back(jnp.ones_like(energy))
        return energy, v_rho, v_sigma
