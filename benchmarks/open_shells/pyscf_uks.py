"""PySCF's unrestricted fields: from a density of ours, from its own guess, and followed down.

An open shell may have many states of nearly one energy: an atom's p orbitals can point anywhere.
Started from our density, PySCF converges to the state that we mean, if that is a state at all.
"""

import contextlib
import warnings
from typing import Any

import numpy as np

from benchmarks.reference import CACHE, CONV_TOL, CONV_TOL_GRAD, gradient_method, kept
from pyscf_ipu import Molecule, Settings
from pyscf_ipu.elements.cartesian import MIXED
from pyscf_ipu.elements.mixed import mixed_functions

STEP = 2e-3
"""Bohr, of differences."""
FOLLOWED = 2
"""Instabilities that are followed, one after the other."""


def build(mol: Molecule, level: Settings) -> Any:
    """PySCF's unrestricted object of a level, without dispersion."""
    mole = level.pyscf_mole(mol.numbers, mol.positions, charge=mol.charge, unpaired=mol.unpaired)
    return level.pyscf_method(mole, unrestricted=True)


def from_density(mol: Molecule, level: Settings, density: np.ndarray) -> Any:
    """The field that PySCF converges to from spin densities [2, N, N] of ours."""
    field = build(mol, level)
    return _tight(field, pyscf_density(field, level, density))


def from_own_guess(mol: Molecule, level: Settings) -> dict[str, Any]:
    """Energy (Hartree) and spin of PySCF's default state, tightly converged; kept on disk."""

    def compute() -> dict[str, Any]:
        field = _tight(build(mol, level), None)
        return {
            "energy": float(field.e_tot),
            "s_squared": float(field.spin_square()[0]),
            "converged": bool(field.converged),
        }

    return kept(CACHE.parent / "pyscf-uks", mol, level, compute)


def lowest(mol: Molecule, level: Settings, follow: bool = True) -> dict[str, float]:
    """PySCF's default energy, and the lowest that its instabilities lead to; kept on disk.

    NaN where it does not converge.
    """

    def compute() -> dict[str, float]:
        field, found, default = build(mol, level), [], float("nan")
        with _quiet(), contextlib.suppress(np.linalg.LinAlgError):
            field.max_cycle = 100
            field.kernel()
            default = float(field.e_tot) if field.converged else default
            found = _followed(field) if follow else [default]
        return {"default": default, "lowest": min(found, default=default)}

    return kept(CACHE.parent / f"pyscf-uks-{'lowest' if follow else 'plain'}", mol, level, compute)


def forces_of(field: Any) -> np.ndarray:
    """Forces [A, 3] in Hartree/Bohr with the response of the grid."""
    with _quiet():
        return -np.asarray(gradient_method(field).kernel())


def slope(mol: Molecule, level: Settings, field: Any, direction: np.ndarray) -> float:
    """The slope of PySCF's energy along a direction [A, 3], in Hartree/Bohr.

    It is the reference where atoms have core potentials: see `benchmarks.levels.heavy`.
    """
    start, energies = field.make_rdm1(), []
    for steps in (-2, -1, 1, 2):
        moved = mol.positions + steps * STEP * direction
        there = Molecule(mol.numbers, moved, charge=mol.charge, multiplicity=mol.multiplicity)
        energies.append(float(_tight(build(there, level), start).e_tot))
    return (8 * (energies[2] - energies[1]) - (energies[3] - energies[0])) / (12 * STEP)


def pyscf_density(field: Any, level: Settings, density: np.ndarray) -> np.ndarray:
    """Densities of ours in PySCF's functions, which differ with cart="6d7f"."""
    if level.cart != MIXED:
        return np.asarray(density, np.float64)
    functions = mixed_functions(field.mol)
    return np.einsum("im,smn,jn->sij", functions, density, functions)


def _tight(field: Any, density: np.ndarray | None) -> Any:
    """The field converged tightly; by second order where DIIS does not get there."""
    with _quiet():
        field.conv_tol, field.conv_tol_grad, field.max_cycle = CONV_TOL, CONV_TOL_GRAD, 100
        field.kernel(density)
        if not field.converged and field.mo_coeff is not None:
            second = field.newton()
            second.kernel(field.mo_coeff, field.mo_occ)
            return second if second.converged else field
    return field


def _followed(field: Any) -> list[float]:
    """Energies of a field and of the lower ones that its instabilities lead to."""
    found = []
    if not field.converged:
        field = field.newton()
        field.kernel(field.mo_coeff, field.mo_occ)
    for _ in range(FOLLOWED + 1):
        if field.converged:
            found.append(float(field.e_tot))
        orbitals, _, stable, _ = field.stability(return_status=True)
        if stable:
            break
        field = field.newton()
        field.kernel(orbitals, field.mo_occ)
    return found


@contextlib.contextmanager
def _quiet() -> Any:
    """Without PySCF's remarks, on one thread."""
    from pyscf import lib

    lib.num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
