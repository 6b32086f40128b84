"""nanoDFT: restricted Kohn-Sham density functional theory in one file, to be read in one sitting::

    nanodft benzene                                                    # B3LYP/STO-3G
    nanodft "O 0 0 0; H 0 0 1; H 0 1 0" --basis 6-31g --compare         # Angstrom; against PySCF

A closed-shell molecule has one density matrix D = 2 C C^T over the occupied orbitals C.  Its energy
is a function of D, a loss function if you like::

    E(D) = tr D (T + V)  +  1/2 tr D J(D)  -  a/4 tr D K(D)  +  E_xc[rho]  +  E_nn

    J_ij = sum_kl (ij|kl) D_kl        Coulomb repulsion of the electrons' clouds
    K_ij = sum_kl (ik|jl) D_kl        exchange, of which B3LYP takes the fraction a = 0.2
    rho(r) = sum_ij D_ij chi_i(r) chi_j(r),    E_xc = sum_g w_g e_xc(rho_g, |grad rho_g|^2)

Its gradient is the Fock matrix, F = dE/dD, and jax.grad finds it.  At the minimum over all D that
hold the right number of electrons the orbitals solve F C = S C eps.  F depends on D, hence a loop:
D -> F -> C -> D, until D stands still.  Forces are the other gradient, -dE/dR.

Read in this order: `scf`, `energy`, `exchange_correlation`, `forces`; then where integrals come
from.  Szabo & Ostlund, Modern Quantum Chemistry, ch. 3, explains all but E_xc, for which see Pople,
Gill, Johnson, Chem. Phys. Lett. 199, 557 (1992), doi:10.1016/0009-2614(92)85009-Y.

Atomic units throughout (Hartree, Bohr).  Shape letters: A atoms, N atomic orbitals (AOs), G grid
points.  For benzene in STO-3G, (A, N) = (12, 36), and G = 10236 on grid level 0.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from pyscf.scf.hf import init_guess_by_minao

from pyscf_ipu import Molecule, Settings, Solver
from pyscf_ipu.elements.cartesian import MIXED
from pyscf_ipu.errors import ConvergenceError, TooLarge, UsageError
from pyscf_ipu.host.memory_limit import available_bytes
from pyscf_ipu.nanodft.integrals import INTEGRALS, Integrals, mole_of
from pyscf_ipu.xc import functional

DEFAULT = Settings(grid_level=0, precision="float64")  # B3LYP/STO-3G
# When the loop stops: change of the energy, and largest element of the commutator (Hartree).
THRESHOLDS = {"float64": (1e-9, 1e-6), "float32": (1e-4, 1e-4)}


class EnergyParts(NamedTuple):
    """The terms of E(D), Hartree; arrays () while JAX works on them."""

    kinetic: Array | float  # 225.7 Ha for C6H6
    nuclear_attraction: Array | float  # -938.9 Ha
    coulomb: Array | float  # 314.5 Ha
    exact_exchange: Array | float  # -6.7 Ha
    exchange_correlation: Array | float  # -28.1 Ha
    nuclear_repulsion: Array | float  # 204.0 Ha


class Result(NamedTuple):
    """The result of `scf`: energies in Hartree, matrices in PySCF's AO order."""

    energy: float  # -229.4 Ha for C6H6
    terms: EnergyParts
    mo_energy: np.ndarray  # (N,)
    mo_coeff: np.ndarray  # (N, N), one orbital per column
    density: np.ndarray  # (N, N)
    fock: np.ndarray  # (N, N)
    gap: float  # lowest empty minus highest occupied level; NaN if none is empty
    cycles: int
    commutator: float  # largest element of [F, D]: 0 at the minimum


# ---------------------------------------------------------------------- the self-consistent field


def scf(
    molecule: Molecule,
    settings: Settings = DEFAULT,
    integrals: str = "engine",
    on_cycle: Callable[[Result], None] | None = None,
) -> Result:
    """Restricted Kohn-Sham energy of a molecule; `on_cycle` sees every cycle.

    Raises:
        UsageError: the molecule or a setting cannot be used.
        ConvergenceError: the loop does not end within settings.max_cycles.
    """
    check(molecule, settings, integrals)
    change_limit, commutator_limit = THRESHOLDS[settings.precision]
    occupied = molecule.n_electrons // 2
    with numerics(settings):
        at = INTEGRALS[integrals](molecule, settings)
        ints = at(jnp.asarray(molecule.positions, settings.precision))
        s = np.asarray(ints.overlap)
        values, vectors = np.linalg.eigh(s)
        x = (vectors / np.sqrt(values)) @ vectors.T  # S^(-1/2) (N, N), Loewdin's orthonormal AOs
        guess = init_guess_by_minao(mole_of(molecule, settings))
        density = np.asarray(guess).astype(s.dtype)  # of the free atoms, (N, N)
        focks, errors, last = [], [], math.inf
        for cycle in range(1, settings.max_cycles + 1):
            (total, terms), gradient = energy_and_fock(density, ints, settings.xc)
            fock = np.asarray(gradient)  # F = dE/dD (N, N)
            commutator = x @ (fock @ density @ s - s @ density @ fock) @ x  # 0 at the minimum
            levels, orbitals = np.linalg.eigh(x @ fock @ x)  # (N,) Ha, (N, N)
            result = Result(
                energy=float(total),
                terms=EnergyParts._make(map(float, terms)),
                mo_energy=levels,
                mo_coeff=x @ orbitals,
                density=density,
                fock=fock,
                gap=float(np.diff(levels)[occupied - 1]) if occupied < len(s) else math.nan,
                cycles=cycle,
                commutator=float(np.abs(commutator).max()),
            )
            if on_cycle:
                on_cycle(result)
            if result.commutator < commutator_limit and abs(result.energy - last) < change_limit:
                return result
            last = result.energy
            focks, errors = [*focks, fock][-8:], [*errors, commutator][-8:]
            _, orbitals = np.linalg.eigh(x @ diis(focks, errors) @ x)
            c = (x @ orbitals)[:, :occupied]  # (N, 21) for C6H6
            density = 2 * c @ c.T
    raise ConvergenceError(
        f"not converged after {settings.max_cycles} cycles (commutator {result.commutator:.1e} "
        "Hartree): raise max_cycles, use float64, or check the geometry"
    )


@contextlib.contextmanager
def numerics(settings: Settings) -> Iterator[None]:
    """64-bit mode if asked for, and full float32 products where hardware would cut digits."""
    with jax.enable_x64(settings.precision == "float64"), jax.default_matmul_precision("highest"):
        yield


def diis(focks: list[np.ndarray], errors: list[np.ndarray]) -> np.ndarray:
    """The mixture of Fock matrices whose mixed error is smallest, weights adding up to one.

    Source: P. Pulay, J. Comput. Chem. 3, 556 (1982), doi:10.1002/jcc.540030413.
    """
    m = len(focks)
    e = np.array(errors, np.float64).reshape(m, -1)
    b = np.ones((m + 1, m + 1))  # the last row and column make the weights add up to one
    b[:m, :m] = e @ e.T / max(e[-1] @ e[-1], 1e-20)  # symmetry may make it exactly 0, as in H2
    b[m, m] = 0
    weights = np.linalg.lstsq(b, np.eye(m + 1)[m], rcond=None)[0][:m]
    return np.tensordot(weights.astype(focks[0].dtype), np.array(focks), 1)


def forces(
    molecule: Molecule, result: Result, settings: Settings = DEFAULT, integrals: str = "engine"
) -> Float[np.ndarray, "A 3"]:
    """-dE/dR in Hartree/Bohr by jax.grad at fixed density.

    At the minimum E does not change with the orbitals, except that they have to stay orthonormal
    when S changes; that is the term with W = D F D / 2, the energy-weighted density.  Grid points
    move with their atoms and Becke's weights are differentiated too (PySCF's grid_response=True).
    """
    check(molecule, settings, integrals)
    with numerics(settings):
        at = INTEGRALS[integrals](molecule, settings)
        d, f = jnp.asarray(result.density), jnp.asarray(result.fock)
        w = d @ f @ d / 2  # (N, N)

        def lagrangian(positions: Array) -> Array:
            ints = at(positions)
            total, _ = jax.jit(energy, static_argnames="xc")(d, ints, settings.xc)
            return total - jnp.sum(w * ints.overlap)

        return -np.asarray(jax.grad(lagrangian)(jnp.asarray(molecule.positions, d.dtype)))


# ------------------------------------------------------------------------------ the energy


def energy(
    density: Float[Array, "N N"], integrals: Integrals, xc: str
) -> tuple[Float[Array, ""], EnergyParts]:
    """E(D) in Hartree, and its terms."""
    density = (density + density.T) / 2  # so that the gradient is symmetric as well
    _, exact_exchange, _ = FUNCTIONALS[xc.lower()]
    coulomb = jnp.einsum("ijkl,kl->ij", integrals.repulsion, density)
    exchange = jnp.einsum("ikjl,kl->ij", integrals.repulsion, density)
    terms = EnergyParts(
        kinetic=jnp.sum(density * integrals.kinetic),
        nuclear_attraction=jnp.sum(density * integrals.nuclear),
        coulomb=jnp.sum(density * coulomb) / 2,
        exact_exchange=-exact_exchange * jnp.sum(density * exchange) / 4,
        exchange_correlation=exchange_correlation(density, integrals, xc),
        nuclear_repulsion=integrals.nuclear_repulsion,
    )
    return jnp.asarray(sum(terms)), terms


energy_and_fock = jax.jit(jax.value_and_grad(energy, has_aux=True), static_argnames="xc")


def exchange_correlation(density: Float[Array, "N N"], integrals: Integrals, xc: str) -> Array:
    """E_xc (): the energy density at every grid point times the point's weight."""
    energy_density, _, _ = FUNCTIONALS[xc.lower()]
    if energy_density is None:  # Hartree-Fock
        return jnp.zeros((), density.dtype)
    chi, gradient = integrals.ao[0], integrals.ao[1:]  # (N, G), (3, N, G)
    half = density @ chi  # (N, G)
    rho = jnp.sum(chi * half, axis=0)  # (G,), integrates to 42 electrons for C6H6
    slope = 2 * jnp.sum(gradient * half, axis=1)  # (3, G)
    sigma = jnp.sum(slope * slope, axis=0)  # (G,)
    empty = rho < (1e-10 if rho.dtype == jnp.float32 else 1e-15)
    e_xc = energy_density(jnp.where(empty, 1.0, rho), jnp.where(empty, 0.0, sigma))
    return jnp.sum(integrals.weights * jnp.where(empty, 0.0, e_xc))


# ---------------------------------------------------- functionals: Hartree/Bohr^3 of a closed shell


def slater(rho: Array, sigma: Array) -> Array:
    """Exchange of the uniform electron gas.  Dirac, doi:10.1017/S0305004100016108."""
    return -0.75 * (3 / math.pi) ** (1 / 3) * rho ** (4 / 3)


def b88(rho: Array, sigma: Array) -> Array:
    """Becke 1988, eq. 8, doi:10.1103/PhysRevA.38.3098, for two spins of half the density each."""
    spin, beta = rho / 2, 0.0042
    x = jnp.sqrt(sigma / 4 + 1e-30) / spin ** (4 / 3)  # reduced gradient
    gradient = beta * x**2 / (1 + 6 * beta * x * jnp.arcsinh(x))
    return slater(rho, sigma) - 2 * spin ** (4 / 3) * gradient


def vwn(rho: Array, sigma: Array, b: float, c: float, x0: float) -> Array:
    """Vosko, Wilk, Nusair, eq. 4.4, doi:10.1139/p80-159: correlation of the uniform gas."""
    x, q = (3 / (4 * math.pi * rho)) ** (1 / 6), math.sqrt(4 * c - b * b)  # x: root of r_s
    poly, poly0 = x * x + b * x + c, x0 * x0 + b * x0 + c
    angle = jnp.arctan(q / (2 * x + b))
    local = jnp.log(x * x / poly) + 2 * b / q * angle
    shifted = jnp.log((x - x0) ** 2 / poly) + 2 * (b + 2 * x0) / q * angle
    return 0.0310907 * rho * (local - b * x0 / poly0 * shifted)


vwn5 = partial(vwn, b=3.72744, c=12.9352, x0=-0.10498)  # fit to Monte Carlo
vwn_rpa = partial(vwn, b=13.0720, c=42.7198, x0=-0.409286)  # fit to the random-phase approximation


def lyp(rho: Array, sigma: Array) -> Array:
    """Lee, Yang, Parr 1988 as written by Miehlich et al., doi:10.1016/0009-2614(89)87234-3."""
    a, b, c, d = 0.04918, 0.132, 0.2533, 0.349
    radius = rho ** (-1 / 3)
    screening, kinetic = 1 / (1 + d * radius), 0.3 * (3 * math.pi**2) ** (2 / 3)
    delta = c * radius + d * radius * screening
    gradient = sigma * rho ** (-8 / 3) * (3 + 7 * delta) / 72
    return -a * screening * rho * (1 + b * jnp.exp(-c * radius) * (kinetic - gradient))


def b3lyp(rho: Array, sigma: Array, local: Callable = vwn_rpa) -> Array:
    """The semilocal part of B3LYP.  Stephens et al., doi:10.1021/j100096a001."""
    exchange = 0.08 * slater(rho, sigma) + 0.72 * b88(rho, sigma)
    return exchange + 0.81 * lyp(rho, sigma) + 0.19 * local(rho, sigma)


def lda(rho: Array, sigma: Array) -> Array:
    """Slater and VWN5, as in Gaussian's SVWN5."""
    return slater(rho, sigma) + vwn5(rho, sigma)


def blyp(rho: Array, sigma: Array) -> Array:
    """Becke 1988 and Lee-Yang-Parr."""
    return b88(rho, sigma) + lyp(rho, sigma)


# Energy density, fraction of exact exchange, and what PySCF calls the same functional.
FUNCTIONALS: dict[str, tuple[Callable | None, float, str]] = {
    "hf": (None, 1.0, "hf"),
    "lda": (lda, 0.0, "lda,vwn"),
    "pbe": (functional("pbe").energy_density, 0.0, "pbe,pbe"),  # not written out here
    "pbe0": (functional("pbe0").energy_density, 0.25, "pbe0"),
    "blyp": (blyp, 0.0, "b88,lyp"),
    "b3lyp": (b3lyp, 0.2, "b3lyp"),
    "b3lyp5": (partial(b3lyp, local=vwn5), 0.2, "b3lyp5"),
}


def check(molecule: Molecule, settings: Settings, integrals: str) -> None:
    """Raise InvalidMolecule or ValueError, saying what is allowed, for what nanoDFT cannot use."""
    known = ("precision", settings.precision, THRESHOLDS), ("xc", settings.xc, FUNCTIONALS)
    for name, value, allowed in (*known, ("integrals", integrals, INTEGRALS)):
        if value not in allowed:
            raise UsageError(f"{name} is {value!r}: nanoDFT has {', '.join(allowed)}")
    if settings.check().cart == MIXED:
        raise UsageError(f"cart={MIXED!r}: nanoDFT has cartesian or spherical functions, not both")
    molecule.check(settings.precision)
    solver = Solver(settings)
    solver.shape(molecule)  # refuses elements that the basis lacks, and too many electrons
    n = solver.n_ao(molecule.numbers)
    if 24 * n**4 > available_bytes():  # the ERIs in float64, and copies on the way
        raise TooLarge(f"{n} AOs: nanoDFT keeps all {n}^4 integrals; use pyscf_ipu.rks here")
