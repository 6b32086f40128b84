"""float32, or mixed, against float64 of this engine, which the other scripts compare with PySCF.

wb97x      omega-B97X/6-31G*, cartesian d, 24 conformers of 5 to 9 heavy atoms
def2-tzvp  B3LYP/def2-TZVP, 12 conformers of 3 and 4 heavy atoms
openff     that preset, 12 conformers of 6 molecules of 3 to 6 heavy atoms
r2scan-3c  the same
b97-3c     the same
omol25     the same, in mixed
"""

import sys
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks import harness, molecules
from benchmarks.pool import Pool
from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.base.units import HARTREE_TO_EV

MEV = 1e3 * HARTREE_TO_EV
BOUNDS = {"energy_mae": 1.0, "energy_max": 5.0, "gap_mae": 0.2, "forces_max": 1e-4}
"""meV, and Hartree/Bohr."""
SMALLER = "CCO CC=O CC#N C1CC1 NC=O CCF CCCC CC(=O)O C1COC1 C=CC=C CC(N)=O OCC=O".split()
LARGER = [*molecules.smiles_of(molecules.GDB, 20), *molecules.smiles_of(molecules.QM9, 4)]
MIXED = "CCO CCS CCCl CC(N)=O c1ccsc1 c1ccncc1".split()
"""Of 3 to 6 heavy atoms, with other elements; each with two conformers."""
CASES = {
    "wb97x": (Settings(xc="wb97x", basis="6-31g*", cart=True, grid_level=1), LARGER, 1),
    "def2-tzvp": (Settings(xc="b3lyp", basis="def2-tzvp", grid_level=1), SMALLER, 1),
    **{
        name: (replace(Settings.preset(name), precision="float32"), MIXED, 2)
        for name in ("openff", "r2scan-3c", "b97-3c")
    },
    "omol25": (Settings.preset("omol25"), MIXED, 2),
}
"""Level, molecules, conformers of each."""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "cases", CASES)
    parser.add_argument("--limit", type=int, help="molecules of each case, the first ones")
    parser.add_argument("--energies", action="store_true", help="no forces: minutes, not an hour")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    args = parser.parse_args()
    bounds = {k: v for k, v in BOUNDS.items() if k != "forces_max" or not args.energies}
    parts = {name: partial(case, name, bounds, args.limit, args.workers) for name in CASES}
    return harness.run_parts(parts, args.cases, args.out)


def case(
    name: str, bounds: dict[str, float], limit: int | None, workers: int | None
) -> tuple[Any, list[str]]:
    """Errors of one case, and the bounds that it misses."""
    level, smiles, seeds = CASES[name]
    return judged(level, smiles[:limit], bounds, workers=workers, seeds=seeds)


def judged(
    level: Settings,
    smiles: list[str],
    bounds: dict[str, float],
    workers: int | None,
    seeds: int = 1,
) -> tuple[Any, list[str]]:
    """Errors at one level, and the bounds that they miss; of converged rows.

    Args:
        level: the level of theory, in the precision to judge.
        smiles: the molecules.
        bounds: by figure; forces are computed if one is on them.
        workers: processes; None for one per core.
        seeds: conformers of each molecule.
    """
    forces = "forces_max" in bounds
    mols = [mol for seed in range(seeds) for mol in molecules.embed(smiles, seed)]
    groups = harness.grouped(mols, Solver(level).shape)
    groups = sorted(groups.items(), key=lambda g: -g[0].n_ao)
    tasks = [(level, group, forces) for _, group in groups]
    rows: list[dict[str, Any]] = []
    with Pool(workers) as pool:
        for _, found in pool.each(compare, tasks):
            rows += found
            harness.table(found)
    there = [row for row in rows if row["converged"]]
    energy, gap, charge = (
        np.array([row[key] for row in there]) for key in ("energy", "gap", "charge")
    )
    figures = {
        "conformers": len(there),
        "energy_mae": float(np.abs(energy).mean()),
        "energy_mean": float(energy.mean()),
        "energy_max": float(np.abs(energy).max()),
        "gap_mae": float(np.abs(gap).mean()),
        "gap_max": float(np.abs(gap).max()),
        "charge_max": float(charge.max()),
    }
    if forces:
        figures["forces_max"] = float(max(row["forces"] for row in there))
    harness.table([figures])
    missed = [f"{k} {figures[k]:.2g}" for k, bound in bounds.items() if figures[k] > bound]
    missed += [f"{row['smiles']} not converged" for row in rows if not row["converged"]]
    return figures | {"rows": rows}, missed


def compare(level: Settings, mols: list[Molecule], forces: bool) -> list[dict[str, Any]]:
    """In a worker: the level minus float64, in meV, for molecules of one shape."""
    ours, exact = (
        rks(mols, solver=Solver(one), forces=forces)
        for one in (level, replace(level, precision="float64"))
    )
    found = [
        {
            "smiles": mol.smiles,
            "energy": MEV * float(ours.energy[i] - exact.energy[i]),
            "gap": MEV * float(ours.gap[i] - exact.gap[i]),
            "charge": largest(ours.mulliken_charges[i], exact.mulliken_charges[i]),
            "overlap_smallest": float(exact.overlap_smallest[i]),
            "converged": bool(ours.converged[i] and exact.converged[i]),
        }
        for i, mol in enumerate(mols)
    ]
    if ours.forces is not None and exact.forces is not None:
        for row, one, other in zip(found, ours.forces, exact.forces, strict=True):
            row["forces"] = largest(one, other)
    return found


def largest(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference."""
    return float(np.abs(one - other).max())


if __name__ == "__main__":
    sys.exit(main())
