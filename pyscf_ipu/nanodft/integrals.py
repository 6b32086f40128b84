"""Integrals of one molecule as plain matrices: what nanoDFT computes with.

`engine_integrals` and `pyscf_integrals` give the same numbers.  Each takes a molecule and returns a
function of the positions that JAX can differentiate.  AOs are in PySCF's order, units atomic.
Shape letters: A atoms, N atomic orbitals (AOs), G grid points.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from pyscf import dft, gto
from scipy.linalg import block_diag

from pyscf_ipu import Molecule, Settings
from pyscf_ipu.codelets import strip_primitives
from pyscf_ipu.elements.atomic_grid import Grid, atomic_grid, bragg_adjust
from pyscf_ipu.elements.basis import element_basis
from pyscf_ipu.elements.free_atom import one_centre_integrals
from pyscf_ipu.grid.ao_values import ao_values
from pyscf_ipu.integrals import eri_matrix, one_electron
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes import conformer as shapes_conformer
from pyscf_ipu.shapes import tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan


class Integrals(NamedTuple):
    """Everything that depends on the nuclei and the AOs alone, computed once per geometry."""

    overlap: Array  # S (N, N), ones on the diagonal
    kinetic: Array  # T (N, N)
    nuclear: Array  # V (N, N), attraction by all nuclei
    repulsion: Array  # (ij|kl), (N, N, N, N): 1.7 million numbers for benzene
    ao: Array  # (4, N, G): chi_i, d/dx, d/dy, d/dz on the grid
    weights: Array  # (G,) Bohr^3
    nuclear_repulsion: Array  # E_nn, (), 204.0 Ha for C6H6


def engine_integrals(molecule: Molecule, settings: Settings) -> Callable[[Array], Integrals]:
    """Positions (A, 3) -> Integrals by this package's own code, differentiable by JAX."""
    numbers, dtype = molecule.numbers, np.dtype(settings.precision).type
    shape = shape_of(numbers, settings.basis, settings.cart, grid=settings.grid, pad=False)
    plan = tile_plan(shape, strip_primitives=strip_primitives())
    table = tables.shape_tables(shape, settings)
    conformer = shapes_conformer.conformer(molecule, shape, settings)
    atoms = shapes_conformer.slot_order(molecule, shape, settings)  # sorted by element
    ao = shapes_conformer.ao_order(molecule, shape, settings)  # and this leads back to PySCF's AOs
    row = plan.row_of[np.ix_(ao, ao)]  # where the engine keeps the pair ij, (N, N)
    own = block_diag(*(own_attraction(int(z), settings) for z in numbers))

    @jax.jit
    def at(positions: Array) -> Integrals:
        centres = Pair(positions[atoms], jnp.zeros_like(positions))
        mol = conformer._replace(positions=centres)
        found = gather_atoms(plan, table, mol, dtype=dtype)
        strips = pair_strips(found)
        one = one_electron(found, strips)  # without attraction by the own nucleus
        attraction = jnp.asarray(own, dtype)
        pairs = eri_matrix(plan, strips)[row.ravel()][:, row.ravel()]  # (N^2, N^2)
        local, owner, weights = becke_grid(molecule, settings.grid, positions)
        slot = np.argsort(atoms).astype(np.int32)[owner]
        # Not `ao_blocks`: its vertices hold the shells, by which JAX is to differentiate here.
        owner = centres.at(slot)
        chi = ao_values(plan.layout, found.shells, local, owner=owner, gradient=True)[:, ao]
        return Integrals(
            overlap=one.overlap[row],
            kinetic=one.kinetic[row],
            nuclear=one.nuclear[row] + attraction,
            repulsion=pairs.reshape(*row.shape, *row.shape),
            ao=chi,
            weights=weights,
            nuclear_repulsion=repulsion_of(molecule, positions),
        )

    return at


def own_attraction(number: int, settings: Settings) -> np.ndarray:
    """Attraction of an atom's AOs by its own nucleus, in PySCF's order."""
    level = number, settings.basis, settings.cart
    back = np.argsort(element_basis(*level).pyscf_order)
    return one_centre_integrals(*level)[2][np.ix_(back, back)]


def pyscf_integrals(molecule: Molecule, settings: Settings) -> Callable[[Array], Integrals]:
    """Positions (A, 3) -> Integrals by PySCF, with the derivatives that jax.grad asks for."""

    def values(positions: Array, points: Array) -> tuple[Array, ...]:
        mole = mole_of(molecule, settings, positions)
        found = [mole.intor(f"int1e_{name}") for name in ("ovlp", "kin", "nuc")]
        chi = dft.numint.eval_ao(mole, np.asarray(points, np.float64), deriv=1)  # (4, G, N)
        found += [mole.intor("int2e"), chi.transpose(0, 2, 1)]
        return tuple(jnp.asarray(x, positions.dtype) for x in found)

    def backward(where: tuple[Array, Array], cotangents: tuple[Array, ...]) -> tuple[Array, Array]:
        """An AO moves with its atom, so d/dR of an integral is minus that of the AO by r."""
        positions, points = where
        mole = mole_of(molecule, settings, positions)
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

    grid = jax.jit(partial(becke_grid, molecule, settings.grid))

    def at(positions: Array) -> Integrals:
        local, owner, weights = grid(positions)
        s, t, v, eri, chi = from_pyscf(positions, positions[owner] + local)
        return Integrals(
            s,
            t,
            v,
            repulsion=eri,
            ao=chi,
            weights=weights,
            nuclear_repulsion=repulsion_of(molecule, positions),
        )

    return at


INTEGRALS = {"engine": engine_integrals, "pyscf": pyscf_integrals}


def becke_grid(molecule: Molecule, grid: Grid, positions: Array) -> tuple[Array, np.ndarray, Array]:
    """Points relative to their atoms (G, 3) Bohr, those atoms (G,), weights (G,) Bohr^3.

    Every atom brings its own grid, and smooth cells divide space among the atoms.  Becke, J. Chem.
    Phys. 88, 2547 (1988), doi:10.1063/1.454033, with Treutler's sizes, doi:10.1063/1.469408.
    """
    grids = [atomic_grid(int(z), grid) for z in molecule.numbers]
    owner = np.repeat(np.arange(len(grids)), [len(g) for g in grids])  # (G,)
    local = jnp.asarray(np.concatenate([g.points for g in grids]), positions.dtype)  # (G, 3)
    volume = jnp.asarray(np.concatenate([g.weights for g in grids]), positions.dtype)  # (G,)
    size = bragg_adjust(molecule.numbers)[:, None]
    shift = jnp.asarray(np.clip((size.T / size - size / size.T) / 4, -0.5, 0.5), positions.dtype)
    between = positions[:, None] - positions  # (A, A, 3)
    distance = jnp.linalg.norm(local[:, None] + between[owner], axis=-1)  # (G, A)
    same = jnp.eye(len(grids), dtype=bool)
    apart = jnp.linalg.norm(jnp.where(same[..., None], 1.0, between), axis=-1)  # (A, A)

    def times_cell(cell: Array, j: Array) -> tuple[Array, None]:
        mu = (distance - distance[:, j, None]) / apart[:, j]  # -1 at the atom, 1 at atom j; (G, A)
        step = 0.5 - 0.5 * (mu + shift[:, j] * (1 - mu * mu))
        for _ in range(3):
            step = step * step * (3 - 2 * step)
        return cell * jnp.where(same[:, j], 1.0, step), None

    cells, _ = jax.lax.scan(
        times_cell, jnp.ones_like(distance), jnp.arange(len(grids), dtype=np.int32)
    )
    mine = cells[np.arange(len(owner)), owner]
    return local, owner, volume * mine / jnp.sum(cells, axis=1)


def repulsion_of(molecule: Molecule, positions: Array) -> Array:
    """Repulsion of the nuclei, (): sum over pairs of Z Z / R."""
    i, j = np.triu_indices(molecule.n_atoms, 1)
    charges = jnp.asarray(molecule.numbers[i] * molecule.numbers[j], positions.dtype)
    return jnp.sum(charges / jnp.linalg.norm(positions[i] - positions[j], axis=-1))


def mole_of(molecule: Molecule, settings: Settings, positions: ArrayLike | None = None) -> gto.Mole:
    """The same molecule for PySCF, perhaps at other positions (A, 3)."""
    where = np.asarray(molecule.positions if positions is None else positions, np.float64)
    return settings.pyscf_mole(molecule.numbers, where, molecule.charge)
