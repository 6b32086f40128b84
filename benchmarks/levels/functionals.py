"""Every functional against PySCF: float64, STO-3G and 6-31G*, grid level 0, without dispersion.

PySCF goes by libxc numbers.  A task is one level, whose molecules have two shapes; PySCF's results
are kept.  Workers are pinned, single-threaded processes, one per core.  Needs the extra
`dispersion`, as four functionals have a correction of their own, which is then taken off.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness, molecules
from benchmarks.pool import Pool
from benchmarks.reference import CACHE, reference
from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.xc import FUNCTIONALS, functional

BASES = ("sto-3g", "6-31g*")
SMILES = [*molecules.FEW, "CC", "C#C", "OO", "NN", *molecules.CHLORINE]
ENERGY_BOUND, ORBITAL_BOUND = 1e-7, 1e-6  # Hartree


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "functionals", FUNCTIONALS)
    parser.add_argument("--basis", nargs="*", choices=BASES, default=BASES)
    parser.add_argument("--limit", type=int, default=len(SMILES), help="molecules, at most")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where references are kept")
    args = parser.parse_args()
    mols = molecules.embed(SMILES[: args.limit])
    levels = [
        Settings(basis=basis, xc=xc, precision="float64", grid_level=0)
        for basis in reversed(args.basis)
        for xc in args.functionals or FUNCTIONALS
    ]
    found: dict[int, list[dict[str, Any]]] = {}
    with Pool(args.workers) as pool:
        for i, rows in pool.each(compare, [(level, mols, args.cache) for level in levels]):
            found[i] = rows
            print(line(summary(levels[i], rows)), flush=True)
    summaries = [summary(levels[i], found[i]) for i in sorted(found)]
    harness.table(summaries)
    missed = [line(one) for one in summaries if not one["reached"]]
    rows = [row for i in sorted(found) for row in found[i]]
    return harness.finish(args.out, {"summary": summaries, "rows": rows}, missed)


def compare(level: Settings, mols: list[Molecule], cache: Path) -> list[dict[str, Any]]:
    """In a worker: ours minus PySCF's, molecule by molecule, Hartree."""
    ours = rks(mols, solver=Solver(level))
    rows = []
    for i, mol in enumerate(mols):
        theirs = reference(mol, level, cache)
        energy = sum(float(values[i]) for values in ours.energy_terms.values())
        orbitals = np.asarray(ours.mo_energy[i]) - np.array(theirs["mo_energy"])
        rows.append(
            {
                "xc": level.xc,
                "basis": level.basis,
                "smiles": mol.smiles,
                "reference": theirs["energy"],
                "energy": energy - theirs["energy"],
                "orbital": float(np.abs(orbitals).max()),
                "converged": bool(ours.converged[i] and theirs["converged"]),
            }
        )
    return rows


def summary(level: Settings, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The largest differences of a level, and whether both bounds are met."""
    energy = max(abs(row["energy"]) for row in rows)
    orbital = max(row["orbital"] for row in rows)
    converged = all(row["converged"] for row in rows)
    return {
        "xc": level.xc,
        "libxc": functional(level.xc).pyscf_name,
        "basis": level.basis,
        "molecules": len(rows),
        "energy": energy,
        "orbital": orbital,
        "converged": converged,
        "reached": bool(converged and energy <= ENERGY_BOUND and orbital <= ORBITAL_BOUND),
    }


def line(one: dict[str, Any]) -> str:
    """A summary in words."""
    return (
        f"{one['xc']:11} {one['basis']:7} {one['molecules']:3} molecules: energy "
        f"{one['energy']:.1e} Ha, orbital energies {one['orbital']:.1e} Ha"
        + (", all converged" * one["converged"])
    )


if __name__ == "__main__":
    sys.exit(main())
