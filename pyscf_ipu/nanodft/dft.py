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

Read in this order: `scf`, `energy`, `exchange_correlation`, `forces`; then the functionals, and the
integrals, from PySCF.  Szabo & Ostlund, Modern Quantum Chemistry, ch. 3, explains all but E_xc, for
which see Pople, Gill, Johnson, doi:10.1016/0009-2614(92)85009-Y.

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
from pyscf import dft, gto
from pyscf.lib.exceptions import BasisNotFoundError
from pyscf.scf.hf import init_guess_by_minao

from pyscf_ipu.base.errors import ConvergenceError, UsageError
from pyscf_ipu.molecule.molecule import Molecule

# When the loop stops: change of the energy, and largest element of the commutator (Hartree).
THRESHOLDS = {"float64": (1e-9, 1e-6), "float32": (1e-4, 1e-4)}
MOST_AOS = 120  # 1.7 GB of integrals, and twice as much for copies on the way


class Theory(NamedTuple):
    """The level of theory."""

    basis: str = "sto-3g"  # a basis set that PySCF knows
    xc: str = "b3lyp"  # a key of FUNCTIONALS
    grid_level: int = 0  # PySCF's, 0 (coarse) to 9 (fine)
    precision: str = "float64"  # or float32
    max_cycles: int = 50


DEFAULT = Theory()


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
    molecule: Molecule, level: Theory = DEFAULT, on_cycle: Callable[[Result], None] | None = None
) -> Result:
    """Restricted Kohn-Sham energy of a molecule; `on_cycle` sees every cycle.

    Raises:
        UsageError: the molecule or the level cannot be used.
        ConvergenceError: the loop does not end within level.max_cycles.
    """
    check(molecule, level)
    change_limit, commutator_limit = THRESHOLDS[level.precision]
    occupied = molecule.n_electrons // 2
    with numerics(level):
        ints = integrals(molecule, level)(jnp.asarray(molecule.positions, level.precision))
        s = np.asarray(ints.overlap)
        values, vectors = np.linalg.eigh(s)
        x = (vectors / np.sqrt(values)) @ vectors.T  # S^(-1/2) (N, N), Loewdin's orthonormal AOs
        guess = init_guess_by_minao(mole_of(molecule, level))
        density = np.asarray(guess).astype(s.dtype)  # of the free atoms, (N, N)
        focks, errors, last = [], [], math.inf
        for cycle in range(1, level.max_cycles + 1):
            (total, terms), gradient = energy_and_fock(density, ints, level.xc)
            fock = np.asarray(gradient)  # F = dE/dD (N, N)
            commutator = x @ (fock @ density @ s - s @ density @ fock) @ x  # 0 at the minimum
            eps, orbitals = np.linalg.eigh(x @ fock @ x)  # (N,) Ha, (N, N)
            result = Result(
                energy=float(total),
                terms=EnergyParts._make(map(float, terms)),
                mo_energy=eps,
                mo_coeff=x @ orbitals,
                density=density,
                fock=fock,
                gap=float(np.diff(eps)[occupied - 1]) if occupied < len(s) else math.nan,
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
        f"not converged after {level.max_cycles} cycles (commutator {result.commutator:.1e} "
        "Hartree): raise max_cycles, use float64, or check the geometry"
    )


@contextlib.contextmanager
def numerics(level: Theory) -> Iterator[None]:
    """64-bit mode if asked for, and full float32 products where hardware would cut digits."""
    with jax.enable_x64(level.precision == "float64"), jax.default_matmul_precision("highest"):
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


def forces(molecule: Molecule, result: Result, level: Theory = DEFAULT) -> Float[np.ndarray, "A 3"]:
    """-dE/dR in Hartree/Bohr by jax.grad at fixed density.

    At the minimum E does not change with the orbitals, except that they have to stay orthonormal
    when S changes; that is the term with W = D F D / 2, the energy-weighted density.  Grid points
    move with their atoms and Becke's weights are differentiated too (PySCF's grid_response=True).
    """
    check(molecule, level)
    with numerics(level):
        at = integrals(molecule, level)
        d, f = jnp.asarray(result.density), jnp.asarray(result.fock)
        w = d @ f @ d / 2  # (N, N)

        def lagrangian(positions: Array) -> Array:
            ints = at(positions)
            total, _ = jax.jit(energy, static_argnames="xc")(d, ints, level.xc)
            return total - jnp.sum(w * ints.overlap)

        return -np.asarray(jax.grad(lagrangian)(jnp.asarray(molecule.positions, d.dtype)))


# ------------------------------------------------------------------------------ the energy


def energy(
    density: Float[Array, "N N"], ints: "Integrals", xc: str
) -> tuple[Float[Array, ""], EnergyParts]:
    """E(D) in Hartree, and its terms."""
    density = (density + density.T) / 2  # so that the gradient is symmetric as well
    _, exact_exchange, _ = FUNCTIONALS[xc.lower()]
    coulomb = jnp.einsum("ijkl,kl->ij", ints.repulsion, density)
    exchange = jnp.einsum("ikjl,kl->ij", ints.repulsion, density)
    terms = EnergyParts(
        kinetic=jnp.sum(density * ints.kinetic),
        nuclear_attraction=jnp.sum(density * ints.nuclear),
        coulomb=jnp.sum(density * coulomb) / 2,
        exact_exchange=-exact_exchange * jnp.sum(density * exchange) / 4,
        exchange_correlation=exchange_correlation(density, ints, xc),
        nuclear_repulsion=ints.nuclear_repulsion,
    )
    return jnp.asarray(sum(terms)), terms


energy_and_fock = jax.jit(jax.value_and_grad(energy, has_aux=True), static_argnames="xc")


def exchange_correlation(density: Float[Array, "N N"], ints: "Integrals", xc: str) -> Array:
    """E_xc (): the energy density at every grid point times the point's weight."""
    energy_density, _, _ = FUNCTIONALS[xc.lower()]
    if energy_density is None:  # Hartree-Fock
        return jnp.zeros((), density.dtype)
    chi, gradient = ints.ao[0], ints.ao[1:]  # (N, G), (3, N, G)
    half = density @ chi  # (N, G)
    rho = jnp.sum(chi * half, axis=0)  # (G,), integrates to 42 electrons for C6H6
    slope = 2 * jnp.sum(gradient * half, axis=1)  # (3, G)
    sigma = jnp.sum(slope * slope, axis=0)  # (G,)
    empty = rho < (1e-10 if rho.dtype == jnp.float32 else 1e-15)
    e_xc = energy_density(jnp.where(empty, 1.0, rho), jnp.where(empty, 0.0, sigma))
    return jnp.sum(ints.weights * jnp.where(empty, 0.0, e_xc))


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


def pbe_x(rho: Array, sigma: Array) -> Array:
    """Perdew, Burke, Ernzerhof, eqs. 10-14, doi:10.1103/PhysRevLett.77.3865: exchange."""
    s2 = sigma * rho ** (-8 / 3) / (4 * (3 * math.pi**2) ** (2 / 3))  # reduced gradient, squared
    return slater(rho, sigma) * (1 + 0.804 - 0.804 / (1 + 0.2195149727645171 / 0.804 * s2))


def pbe_c(rho: Array, sigma: Array) -> Array:
    """Eqs. 7 and 8 of the same paper: correlation, from doi:10.1103/PhysRevB.45.13244, eq. 10."""
    beta, gamma = 0.06672455060314922, (1 - math.log(2)) / math.pi**2
    x, a = (3 / (4 * math.pi * rho)) ** (1 / 6), 0.0310907  # x: root of r_s
    series = x * (7.5957 + x * (3.5876 + x * (1.6382 + x * 0.49294)))
    uniform = -2 * a * (1 + 0.21370 * x * x) * jnp.log1p(1 / (2 * a * series))
    y = beta / gamma * math.pi / (16 * (3 * math.pi**2) ** (1 / 3)) * sigma * rho ** (-7 / 3)
    e = jnp.expm1(-uniform / gamma)
    u = y / (e + y)
    return rho * (uniform + gamma * jnp.log1p(e * u / (1 - u * (1 - u))))


def pbe(rho: Array, sigma: Array, exchange: float = 1.0) -> Array:
    """The whole functional, or with a part of its exchange, as in PBE0, doi:10.1063/1.478522."""
    return exchange * pbe_x(rho, sigma) + pbe_c(rho, sigma)


# Energy density, fraction of exact exchange, and what PySCF calls the same functional.
FUNCTIONALS: dict[str, tuple[Callable | None, float, str]] = {
    "hf": (None, 1.0, "hf"),
    "lda": (lda, 0.0, "lda,vwn"),
    "pbe": (pbe, 0.0, "pbe,pbe"),
    "pbe0": (partial(pbe, exchange=0.75), 0.25, "pbe0"),
    "blyp": (blyp, 0.0, "b88,lyp"),
    "b3lyp": (b3lyp, 0.2, "b3lyp"),
    "b3lyp5": (partial(b3lyp, local=vwn5), 0.2, "b3lyp5"),
}


# ------------------------------------------------------------------------------ the integrals


class Integrals(NamedTuple):
    """Everything that depends on the nuclei and the AOs alone, computed once per geometry."""

    overlap: Array  # S (N, N), ones on the diagonal
    kinetic: Array  # T (N, N)
    nuclear: Array  # V (N, N), attraction by all nuclei
    repulsion: Array  # (ij|kl), (N, N, N, N): 1.7 million numbers for benzene
    ao: Array  # (4, N, G): chi_i, d/dx, d/dy, d/dz on the grid
    weights: Array  # (G,) Bohr^3
    nuclear_repulsion: Array  # E_nn, (), 204.0 Ha for C6H6


def integrals(molecule: Molecule, level: Theory) -> Callable[[Array], Integrals]:
    """Positions (A, 3) -> Integrals by PySCF, with the derivatives that jax.grad asks for."""

    def values(positions: Array, points: Array) -> tuple[Array, ...]:
        mole = mole_of(molecule, level, positions)
        matrices = [mole.intor(f"int1e_{name}") for name in ("ovlp", "kin", "nuc")]
        chi = dft.numint.eval_ao(mole, np.asarray(points, np.float64), deriv=1)  # (4, G, N)
        matrices += [mole.intor("int2e"), chi.transpose(0, 2, 1)]
        return tuple(jnp.asarray(x, positions.dtype) for x in matrices)

    def backward(where: tuple[Array, Array], cotangents: tuple[Array, ...]) -> tuple[Array, Array]:
        """An AO moves with its atom, so d/dR of an integral is minus that of the AO by r."""
        positions, points = where
        mole = mole_of(molecule, level, positions)
        s, t, v, eri, chi = (np.asarray(x, np.float64) for x in cotangents)
        s, t, v = (x + x.T for x in (s, t, v))
        eri = eri + eri.transpose(1, 0, 2, 3)
        eri = (eri + eri.transpose(0, 1, 3, 2)) / 2
        eri = eri + eri.transpose(2, 3, 0, 1)
        of_ao = -sum(  # (3, N)
            np.einsum("xij,ij->xi", mole.intor(f"int1e_ip{name}"), bar)
            for name, bar in (("ovlp", s), ("kin", t), ("nuc", v))
        )
        of_ao -= np.einsum("xijkl,ijkl->xi", mole.intor("int2e_ip1"), eri)
        d2 = dft.numint.eval_ao(mole, np.asarray(points, np.float64), deriv=2)  # 1 x y z xx xy ...
        slopes = d2[[[1, 2, 3], [4, 5, 6], [5, 7, 8], [6, 8, 9]]]  # (4, 3, G, N)
        by_point = np.einsum("cxgi,cig->xgi", slopes, chi)
        of_atom = np.zeros((molecule.n_atoms, 3))
        for a, (_, _, first, last) in enumerate(mole.aoslice_by_atom()):
            of_atom[a] = (of_ao - by_point.sum(1))[:, first:last].sum(1)
            with mole.with_rinv_at_nucleus(a):  # the potential of nucleus a moves as well
                field = mole.atom_charge(a) * mole.intor("int1e_iprinv")
            of_atom[a] -= np.einsum("xij,ij->x", field, v)
        of_point = by_point.sum(2).T
        return jnp.asarray(of_atom, positions.dtype), jnp.asarray(of_point, positions.dtype)

    from_pyscf = jax.custom_vjp(values)
    from_pyscf.defvjp(lambda *where: (values(*where), where), backward)
    grid = jax.jit(becke_grid(molecule, level))
    charge, (i, j) = 1.0 * molecule.numbers, np.triu_indices(molecule.n_atoms, 1)

    def at(positions: Array) -> Integrals:
        local, owner, weights = grid(positions)
        apart = jnp.linalg.norm(positions[i] - positions[j], axis=-1)
        repulsion = jnp.sum(jnp.asarray(charge[i] * charge[j]) / apart)
        s, t, v, eri, chi = from_pyscf(positions, positions[owner] + local)
        known = {"overlap": s, "kinetic": t, "nuclear": v, "repulsion": eri, "ao": chi}
        return Integrals(**known, weights=weights, nuclear_repulsion=repulsion)

    return at


def becke_grid(
    molecule: Molecule, level: Theory
) -> Callable[[Array], tuple[Array, np.ndarray, Array]]:
    """Positions -> points from their atoms (G, 3), those atoms (G,), weights (G,); Bohr, Bohr^3.

    Every atom brings its own grid, and smooth cells divide space among the atoms.  Becke, J. Chem.
    Phys. 88, 2547 (1988), doi:10.1063/1.454033, with Treutler's sizes, doi:10.1063/1.469408.
    """
    mole = mole_of(molecule, level)
    spheres = dft.Grids(mole).gen_atomic_grids(mole, level=level.grid_level)
    grids = [spheres[mole.atom_symbol(a)] for a in range(mole.natm)]
    owner = np.repeat(np.arange(mole.natm), [len(weights) for _, weights in grids])  # (G,)
    size = np.sqrt(dft.radi.BRAGG_RADII[molecule.numbers])[:, None]
    shift = jnp.asarray(np.clip((size.T / size - size / size.T) / 4, -0.5, 0.5))  # (A, A)
    local, volume = (jnp.asarray(np.concatenate(x)) for x in zip(*grids, strict=True))
    same = np.eye(mole.natm, dtype=bool)

    def at(positions: Array) -> tuple[Array, np.ndarray, Array]:
        between = positions[:, None] - positions  # (A, A, 3)
        distance = jnp.linalg.norm(local[:, None] + between[owner], axis=-1)  # (G, A)
        apart = jnp.linalg.norm(jnp.where(same[..., None], 1.0, between), axis=-1)  # (A, A)
        cells = jnp.ones_like(distance)
        for j in range(len(grids)):
            mu = (distance - distance[:, j, None]) / apart[:, j]  # -1 at the atom, 1 at atom j
            step = 0.5 - 0.5 * (mu + shift[:, j] * (1 - mu * mu))
            for _ in range(3):
                step = step * step * (3 - 2 * step)
            cells *= jnp.where(same[:, j], 1.0, step)
        mine = cells[np.arange(len(owner)), owner]
        return local, owner, volume * mine / jnp.sum(cells, axis=1)

    return at


def mole_of(molecule: Molecule, level: Theory, positions: Array | None = None) -> gto.Mole:
    """The molecule as PySCF's Mole, perhaps at other positions (A, 3)."""
    where = np.asarray(molecule.positions if positions is None else positions, np.float64)
    atoms = list(zip(molecule.symbols, where.tolist(), strict=True))
    charge, spin = molecule.charge, molecule.unpaired
    return gto.M(atom=atoms, unit="Bohr", basis=level.basis, charge=charge, spin=spin, verbose=0)


def check(molecule: Molecule, level: Theory) -> None:
    """Raise UsageError, saying what is allowed, for what cannot be computed."""
    known = ("precision", level.precision, THRESHOLDS), ("xc", level.xc.lower(), FUNCTIONALS)
    for name, value, allowed in known:
        if value not in allowed:
            raise UsageError(f"{name} is {value!r}: nanoDFT has {', '.join(allowed)}")
    if level.grid_level not in range(10) or level.max_cycles < 1:
        raise UsageError("grid_level is 0 to 9, and max_cycles 1 or more")
    molecule.check(level.precision)
    try:
        mole = mole_of(molecule, level)
    except BasisNotFoundError as error:
        raise UsageError(f"PySCF has no basis {level.basis!r} for {molecule}") from error
    if sum(molecule.n_occupied(level.basis)) < molecule.n_electrons:
        raise UsageError(
            f"basis {level.basis!r} needs a core potential: give an all-electron one, or use "
            "pyscf_ipu.rks, which computes def2's"
        )
    if mole.nao > MOST_AOS:
        raise UsageError(
            f"{mole.nao} AOs: nanoDFT keeps all N^4 integrals, of {MOST_AOS} AOs at most; "
            "pyscf_ipu.rks computes larger molecules"
        )
