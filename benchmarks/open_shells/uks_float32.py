"""float32 on radicals and ions of 3 to 9 heavy atoms: B3LYP/6-31G*, grid level 1.

Energies and forces against this engine's float64 (which `uks_levels` compares with PySCF), and the
state against PySCF's, from its own guess, by --follow down its instabilities, too.  PySCF takes
minutes for the larger ones; its states are kept on disk.  For a quick look: --limit 6 --no-states
"""

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.open_shells import pyscf_uks, species
from benchmarks.open_shells.species import Named
from benchmarks.pool import Pool
from pyscf_ipu import Settings, Solver, uks
from pyscf_ipu.base.units import HARTREE_TO_EV

LEVEL = Settings(xc="b3lyp", basis="6-31g*", grid_level=1)
MEV = 1e3 * HARTREE_TO_EV
BOUNDS = {"energy_median": 0.5, "energy_mean": 0.5, "energy_max": 5.0, "forces_max": 1e-4}
"""meV, and Hartree/Bohr."""
HIGHER_MEV = 10.0


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--limit", type=int, help="species, evenly from all")
    parser.add_argument("--most-atoms", type=int, help="heavy atoms at most")
    parser.add_argument("--no-states", action="store_true", help="without PySCF")
    parser.add_argument("--follow", action="store_true", help="PySCF's instabilities, too")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    args = parser.parse_args()
    solver = Solver(LEVEL)
    chosen = [
        one
        for one in species.radicals(args.limit)
        if (one[1].numbers > 1).sum() <= (args.most_atoms or 9)
    ]
    groups = harness.grouped(chosen, lambda one: solver.shape(one[1]))
    tasks = [(group,) for _, group in sorted(groups.items(), key=lambda g: g[0].n_ao)]
    rows: list[dict[str, Any]] = []
    with Pool(args.workers) as pool:
        for _, found in pool.each(compare, tasks):
            rows += found
            harness.table(found)
            harness.save(args.out, rows)
        if not args.no_states:
            rows = with_states(pool, rows, dict(chosen), follow=args.follow)
    figures, missed = verdict(rows)
    harness.table([figures])
    return harness.finish(args.out, figures | {"rows": rows}, missed)


def compare(chosen: list[Named]) -> list[dict[str, Any]]:
    """In a worker: float32 minus float64 in meV and Hartree/Bohr, for species of one shape."""
    mols = [mol for _, mol in chosen]
    ours, exact = (
        uks(mols, solver=Solver(replace(LEVEL, precision=precision)), forces=True)
        for precision in ("float32", "float64")
    )
    assert ours.forces is not None
    assert exact.forces is not None
    assert ours.s_squared is not None
    return [
        {
            "species": name,
            "hartree": float(ours.energy[i]),
            "energy": MEV * float(ours.energy[i] - exact.energy[i]),
            "gap": MEV * float(ours.gap[i] - exact.gap[i]),
            "forces": float(np.abs(ours.forces[i] - exact.forces[i]).max()),
            "s_squared": float(ours.s_squared[i]),
            "cycles": int(ours.cycles[i]),
            "float32": bool(ours.converged[i]),
            "float64": bool(exact.converged[i]),
        }
        for i, (name, _) in enumerate(chosen)
    ]


def with_states(
    pool: Pool, rows: list[dict[str, Any]], chosen: dict[str, Any], follow: bool
) -> list[dict[str, Any]]:
    """Rows with their energies above PySCF's states, in meV."""
    tasks = [(chosen[row["species"]], LEVEL, follow) for row in rows]
    found = list(rows)
    for i, states in pool.each(pyscf_uks.lowest, tasks):
        above = {f"above_{key}": MEV * (rows[i]["hartree"] - e) for key, e in states.items()}
        found[i] = rows[i] | above
        text = ", ".join(f"{key} {value:.2f} meV" for key, value in above.items())
        print(f"{rows[i]['species']}: {text}", flush=True)
    return found


def verdict(rows: list[dict[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """Figures of all rows, and the bounds that they miss."""
    there = [row for row in rows if row["float32"] and row["float64"]]
    energy = np.array([row["energy"] for row in there])
    higher = [row for row in rows if row["float32"] and row.get("above_lowest", 0.0) > HIGHER_MEV]
    figures = {
        "species": len(rows),
        "converged": len(there),
        "energy_median": float(np.median(np.abs(energy))),
        "energy_mean": float(np.abs(energy).mean()),
        "energy_max": float(np.abs(energy).max()),
        "forces_max": max(row["forces"] for row in there),
        "higher": len(higher),
        "lower": sum(row.get("above_default", 0.0) < -HIGHER_MEV for row in there),
    }
    missed = [f"{k} {figures[k]:.2g}" for k, bound in BOUNDS.items() if figures[k] > bound]
    missed += [f"{row['species']}: {row['above_lowest']:.0f} meV above PySCF" for row in higher]
    missed += [f"{row['species']}: not converged" for row in rows if row not in there]
    return figures, missed


if __name__ == "__main__":
    sys.exit(main())
