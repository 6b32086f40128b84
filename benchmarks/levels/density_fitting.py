"""Density fitting: against PySCF's `density_fit()`, and float32 against float64.

energies  5 functionals, 3 basis sets, 8 molecules; float64, grid level 0
forces    B3LYP and CAM-B3LYP/6-31G*, 8 molecules; float64, grid level 0
6-31g*    B3LYP, 24 conformers of 5 to 9 heavy atoms; float32 - float64, grid level 1
def2-tzvp B3LYP, 12 conformers of 3 and 4 heavy atoms; the same
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks import harness, molecules
from benchmarks.levels import comparison, float32
from benchmarks.pool import Pool
from benchmarks.reference import gradient
from pyscf_ipu import Molecule, Settings, Solver, rks

FUNCTIONALS = ("hf", "pbe", "b3lyp", "hse06", "cam-b3lyp")
BASES = ("6-31g*", "def2-svp", "def2-tzvp")
FITTED = Settings(xc="b3lyp", grid_level=1, jk="ri", accuracy="orbitals")
CASES = {
    "6-31g*": (replace(FITTED, basis="6-31g*"), float32.LARGER),
    "def2-tzvp": (replace(FITTED, basis="def2-tzvp"), float32.SMALLER),
}
BOUNDS = {"energy_mae": 1.0, "gap_mae": 0.1}  # meV
FORCES_BOUND = 1e-6  # Hartree/Bohr


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parts = ("energies", "forces", *CASES)
    harness.add_names(parser, "cases", dict.fromkeys(parts))
    parser.add_argument("--xc", nargs="*", default=FUNCTIONALS, help="of energies")
    parser.add_argument("--basis", nargs="*", default=BASES, help="of energies")
    comparison.add_options(parser, 24)
    args = parser.parse_args()
    found: Mapping[str, Any] = {
        "energies": partial(energies, args),
        "forces": partial(forces, args),
        **{name: partial(rounding, name, args) for name in CASES},
    }
    return harness.run_parts(found, args.cases, args.out)


def energies(args: argparse.Namespace) -> tuple[Any, list[str]]:
    """Against PySCF in float64, level by level."""
    mols = molecules.embed(molecules.FEW[: args.limit])
    rows: list[dict[str, Any]] = []
    with Pool(args.workers) as pool:
        tasks = [
            (
                Settings(basis=basis, xc=xc, grid_level=0, precision="float64", jk="ri"),
                mols,
                args.cache,
            )
            for basis in args.basis
            for xc in args.xc
        ]
        for i, compared in pool.each(comparison.compare, tasks):
            rows.append(comparison.summary(tasks[i][0], compared))
            print(comparison.line(rows[-1]), flush=True)
    harness.table(rows)
    return {"levels": rows}, [comparison.line(one) for one in rows if not one["reached"]]


def forces(args: argparse.Namespace) -> tuple[Any, list[str]]:
    """Against PySCF in float64: the response of grid and auxiliary functions is in both."""
    mols = molecules.embed(molecules.FEW[: args.limit])
    levels = [
        Settings(basis="6-31g*", xc=xc, grid_level=0, precision="float64", jk="ri")
        for xc in ("b3lyp", "cam-b3lyp")
    ]
    rows: list[dict[str, Any]] = []
    with Pool(args.workers) as pool:
        for _, found in pool.each(compare_forces, [(level, mols) for level in levels]):
            rows += found
            harness.table(found)
    wrong = [row for row in rows if row["forces"] > FORCES_BOUND]
    return {"rows": rows}, [f"{row['xc']} {row['smiles']}: {row['forces']:.1e}" for row in wrong]


def compare_forces(level: Settings, mols: list[Molecule]) -> list[dict[str, Any]]:
    """In a worker: the largest component of ours minus PySCF's, Hartree/Bohr."""
    ours = rks(mols, solver=Solver(level), forces=True)
    assert ours.forces is not None
    return [
        {
            "xc": level.xc,
            "smiles": mol.smiles,
            "forces": float(np.abs(ours.forces[i] + gradient(mol, level)).max()),
        }
        for i, mol in enumerate(mols)
    ]


def rounding(name: str, args: argparse.Namespace) -> tuple[Any, list[str]]:
    """Float32 against float64: errors of energies and gaps."""
    level, smiles = CASES[name]
    return float32.judged(level, smiles[: args.limit], BOUNDS, args.workers)


if __name__ == "__main__":
    sys.exit(main())
