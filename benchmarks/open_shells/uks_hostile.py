"""Is what `uks` calls converged in hard open shells the state of its own lowest orbitals?

2,000 species in STO-3G, grid level 0, with the default precision: atoms and ions of H to Kr,
stretched bonds, metals, twisted ethylenes, carbenes.  PySCF's Fock matrices of the densities judge
the converged ones: they must commute with these, and no empty level may lie below an occupied one.
For a quick look: --limit 150
"""

import sys
from typing import Any

import numpy as np
from scipy import linalg

from benchmarks import harness
from benchmarks.open_shells import hostile_species, pyscf_uks
from benchmarks.open_shells.species import Named, computable
from benchmarks.pool import Pool
from pyscf_ipu import Molecule, Settings, Solver, uks
from pyscf_ipu.scf.cycle import AUFBAU_ERROR

COMMUTATOR_BOUND = 1e-3
"""Hartree, the largest element in the orthonormal basis; float32 ends below 2e-4 of its own."""
ORDER_BOUND = 1e-3
"""Hartree: an empty level may be so far below an occupied one, within the error of a degeneracy."""
CHUNK = 40


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--limit", type=int, help="species, evenly from all")
    parser.add_argument("--xc", nargs="*", default=["b3lyp"])
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    args = parser.parse_args()
    chosen = hostile_species.everything(args.limit)
    parts = {
        xc: lambda xc=xc: judge(
            Settings(xc=xc, grid_level=0, precision=args.precision), chosen, args.workers
        )
        for xc in args.xc
    }
    return harness.run_parts(parts, args.xc, args.out)


def judge(
    level: Settings, chosen: list[Named], workers: int | None
) -> tuple[dict[str, Any], list[str]]:
    """Figures of a level, and the species in a wrong state."""
    solver = Solver(level)
    chosen = computable(chosen, level)
    groups = harness.grouped(chosen, lambda one: solver.shape(one[1]))
    rows: list[dict[str, Any]] = []
    with Pool(workers) as pool:
        tasks = [(level, group) for group in groups.values()]
        for _, found in pool.each(checked, tasks):
            rows += found
            print(f"{len(rows)} of {len(chosen)}", flush=True)
    converged = [row for row in rows if row["status"] == "converged"]
    wrong = [row for row in converged if not row["own state"]]
    harness.table(wrong)
    figures = {
        "tried": len(rows),
        "converged": len(converged),
        "wrong": len(wrong),
        "largest commutator": max(row["commutator"] for row in converged),
        "lowest gap": min(row["gap"] for row in converged),
        **{row["status"]: 0 for row in rows},
    }
    for row in rows:
        figures[row["status"]] += 1
    print(figures, flush=True)
    return figures | {"rows": rows}, [f"{row['species']}: not its own state" for row in wrong]


def checked(level: Settings, chosen: list[Named]) -> list[dict[str, Any]]:
    """In a worker: how species of one shape ended, and PySCF's verdict on the converged."""
    rows = []
    for start in range(0, len(chosen), CHUNK):
        some = chosen[start : start + CHUNK]
        ours = uks([mol for _, mol in some], solver=Solver(level), orbitals=True)
        assert ours.mo_coeff is not None
        assert ours.density_matrix is not None
        for i, (name, mol) in enumerate(some):
            row = {
                "species": name,
                "status": ours.status[i].split(":")[0],
                "energy": float(ours.energy[i]),
                "cycles": int(ours.cycles[i]),
            }
            if ours.converged[i]:
                row |= verdict(mol, level, ours.mo_coeff[i], density=ours.density_matrix[i])
            rows.append(row)
    return rows


def verdict(
    mol: Molecule, level: Settings, orbitals: np.ndarray, density: np.ndarray
) -> dict[str, Any]:
    """PySCF's commutator and order of levels for our spin densities, in Hartree."""
    field = pyscf_uks.build(mol, level)
    dense = np.asarray(density, np.float64)
    fock = np.asarray(field.get_fock(dm=dense))
    overlap = field.get_ovlp()
    root = np.real(linalg.sqrtm(overlap))
    inverse = np.linalg.inv(root)
    most, least, own = 0.0, np.inf, 0.0
    for spin, count in enumerate(mol.n_occupied(level.basis)):
        inner, projector = inverse @ fock[spin] @ inverse, root @ dense[spin] @ root
        most = max(most, float(np.abs(inner @ projector - projector @ inner).max()))
        least = min(least, _order(inner, projector, count))
        occupied = np.asarray(orbitals[spin], np.float64)[:, :count]
        own = max(own, float(np.abs(dense[spin] - occupied @ occupied.T).max()))
    good = most <= COMMUTATOR_BOUND and least >= -ORDER_BOUND and own <= AUFBAU_ERROR
    return {"commutator": most, "gap": least, "density_error": own, "own state": good}


def _order(fock: np.ndarray, projector: np.ndarray, count: int) -> float:
    """The lowest empty level minus the highest occupied one, of a density; infinite without one."""
    vectors = np.linalg.eigh(projector)[1]
    empty, occupied = np.split(vectors, [len(fock) - count], axis=1)
    if not empty.size or not occupied.size:
        return np.inf
    return float(
        np.linalg.eigvalsh(empty.T @ fock @ empty)[0]
        - np.linalg.eigvalsh(occupied.T @ fock @ occupied)[-1]
    )


if __name__ == "__main__":
    sys.exit(main())
