"""PySCF in float64, converged tightly, kept on disk: a reference is computed once."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from pyscf_ipu import Molecule, Settings
from qm1b.presets import Level
from qm1b.reference import mean_field
from qm1b.schema import Conformer

CACHE = Path(__file__).parent / ".cache" / "pyscf"
CONV_TOL = 1e-11
CONV_TOL_GRAD = 1e-6


def build(mol: Molecule, settings: Settings) -> Any:
    """PySCF's restricted Kohn-Sham object at a level of theory, with default thresholds."""
    numbers = np.asarray(mol.numbers, np.uint8)
    conformer = Conformer(0, mol.smiles or "", 0, 0, mol.charge, numbers, mol.positions)
    return mean_field(conformer, Level(**vars(settings)))


def reference(mol: Molecule, settings: Settings, cache: Path = CACHE) -> dict[str, Any]:
    """Energy (Hartree), orbital energies, dipole (e Bohr) of a molecule; from disk if it is there.

    A file is written under another name and moved, so an interrupted run leaves no half of one.
    """
    path = cache / f"{_key(mol, settings)}.json"
    if path.exists():
        return json.loads(path.read_text())
    found = _compute(mol, settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{time.monotonic_ns()}.part")
    part.write_text(json.dumps(found))
    part.replace(path)
    return found


def _key(mol: Molecule, settings: Settings) -> str:
    import pyscf

    level = (settings.basis, settings.xc, settings.grid_level, settings.cart)
    thresholds = (CONV_TOL, CONV_TOL_GRAD, pyscf.__version__)
    atoms = (mol.numbers.tolist(), mol.charge, mol.positions.tobytes().hex())
    return hashlib.sha256(repr((level, thresholds, atoms)).encode()).hexdigest()[:32]


def _compute(mol: Molecule, settings: Settings) -> dict[str, Any]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        field = build(mol, settings)
        field.conv_tol, field.conv_tol_grad, field.max_cycle = CONV_TOL, CONV_TOL_GRAD, 100
        field.kernel()
        if not field.converged:
            field = field.newton()
            field.kernel(field.mo_coeff, field.mo_occ)
    return {
        "energy": float(field.e_tot),
        "mo_energy": np.asarray(field.mo_energy).tolist(),
        "dipole": field.dip_moment(unit="AU", verbose=0, origin=np.zeros(3)).tolist(),
        "converged": bool(field.converged),
        "smiles": mol.smiles,
        "seconds": time.perf_counter() - start,
    }
