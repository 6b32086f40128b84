"""PySCF in float64, converged tightly, kept on disk: a reference is computed once."""

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import HERE
from pyscf_ipu import Molecule, Settings
from pyscf_ipu.results import result
from qm1b.reference.recompute import mean_field
from qm1b.rows.schema import Conformer

CACHE = HERE / ".cache" / "pyscf"
CONV_TOL = 1e-11
CONV_TOL_GRAD = 1e-6


def build(mol: Molecule, settings: Settings) -> Any:
    """PySCF's restricted Kohn-Sham object at a level of theory, with default thresholds."""
    numbers = np.asarray(mol.numbers, np.uint8)
    conformer = Conformer(
        line=0, smiles=mol.smiles or "", conformer=0, seed=0, charge=mol.charge,
        numbers=numbers, positions=mol.positions,
    )  # fmt: skip
    return mean_field(conformer, settings)


def frontier(field: Any, occupied: tuple[int, int]) -> tuple[float, float, float]:
    """Run it, without remarks, on one thread: energy, HOMO, LUMO in Hartree.

    Args:
        field: restricted or unrestricted.
        occupied: the numbers of alpha and of beta electrons that it has.
    """
    from pyscf import lib

    lib.num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        energy = float(field.kernel())
    homo, lumo = result.frontier(field.mo_energy, occupied)
    return energy, float(homo), float(lumo)


def reference(mol: Molecule, settings: Settings, cache: Path = CACHE) -> dict[str, Any]:
    """Energy (Hartree), orbital energies, dipole (e Bohr) of a molecule; kept on disk."""
    return kept(cache, mol, settings, lambda: _compute(mol, settings))


def gradient(mol: Molecule, level: Settings) -> np.ndarray:
    """PySCF's gradient [A, 3] in Hartree/Bohr with its grid response; kept on disk."""

    def compute() -> list[list[float]]:
        field = build(mol, level)
        field.conv_tol, field.conv_tol_grad = 0.1 * CONV_TOL, 1e-8
        field.kernel()
        return gradient_method(field).kernel().tolist()

    return np.array(kept(CACHE.parent / "pyscf-gradients", mol, level, compute))


def gradient_method(field: Any) -> Any:
    """What computes the gradient of a converged field."""
    method = field.nuc_grad_method()
    method.verbose, method.grid_response = 0, True
    return method


def kept(folder: Path, mol: Molecule, settings: Settings, compute: Callable[[], Any]) -> Any:
    """What `compute` gives for a molecule at a level of theory, from disk if it is there.

    A file is written under another name and moved, so an interrupted run leaves no half of one.
    """
    path = folder / f"{_key(mol, settings)}.json"
    if not path.exists():
        value = compute()
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(value))
        part.replace(path)
    return json.loads(path.read_text())


def _key(mol: Molecule, settings: Settings) -> str:
    import pyscf

    grid = (settings.grid_level, settings.nlc_grid, settings.prune, settings.grid_kind)
    level = (settings.basis, settings.xc, settings.cart, settings.jk, *grid)
    thresholds = (CONV_TOL, CONV_TOL_GRAD, pyscf.__version__)
    atoms = (mol.numbers.tolist(), mol.charge, mol.positions.tobytes().hex())
    if mol.multiplicity > 1:
        atoms = (*atoms, mol.multiplicity)
    return hashlib.sha256(repr((level, thresholds, atoms)).encode()).hexdigest()[:32]


def converged_field(mol: Molecule, settings: Settings) -> Any:
    """PySCF's object after its SCF, to tight thresholds; by second order where that takes it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        field = build(mol, settings)
        field.conv_tol, field.conv_tol_grad, field.max_cycle = CONV_TOL, CONV_TOL_GRAD, 100
        field.kernel()
        if not field.converged:
            field = field.newton()
            field.kernel(field.mo_coeff, field.mo_occ)
    return field


def _compute(mol: Molecule, settings: Settings) -> dict[str, Any]:
    start = time.perf_counter()
    field = converged_field(mol, settings)
    return {
        "energy": float(field.e_tot),
        "mo_energy": np.asarray(field.mo_energy).tolist(),
        "dipole": field.dip_moment(unit="AU", verbose=0, origin=np.zeros(3)).tolist(),
        "converged": bool(field.converged),
        "smiles": mol.smiles,
        "seconds": time.perf_counter() - start,
    }
