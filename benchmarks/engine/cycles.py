"""What SCF cycles on few points of the grid, and looser thresholds, save and cost.

The same molecules on one core (pin it: taskset -c 0), with every cycle on all points, with coarse
ones, and with each accuracy.  Errors are mean absolute ones, against `float64` on all points.
"""

import sys
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.molecules import QM9, embed, smiles_of
from pyscf_ipu import RKSResult, Settings, Solver, rks
from pyscf_ipu.base.units import HARTREE_TO_EV

WAYS = {
    "all points": {"first_cycles": "full"},
    "coarse cycles": {},
    "accuracy=orbitals": {"accuracy": "orbitals"},
    "accuracy=energy": {"accuracy": "energy"},
}


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--basis", default="sto-3g")
    parser.add_argument("--grid-level", type=int, default=0)
    parser.add_argument("--limit", type=int, default=100, help="lines of the file, 9 heavy atoms")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    mols = embed(smiles_of(QM9, args.limit))
    level = {"basis": args.basis, "xc": "b3lyp5", "grid_level": args.grid_level}
    exact = Settings(**level, precision="float64", first_cycles="full")
    reference = rks(mols, solver=Solver(exact), workers=1)
    solvers = {name: Solver(Settings(**level, **way)) for name, way in WAYS.items()}
    found = {name: rks(mols, solver=one, workers=1) for name, one in solvers.items()}
    seconds = {
        name: harness.processor_seconds(
            lambda one=one: rks(mols, solver=one, workers=1), args.rounds
        )
        for name, one in solvers.items()
    }
    rows = [
        {"cycles": name, "ms": 1e3 * seconds[name] / len(mols)} | errors(result, reference)
        for name, result in found.items()
    ]
    print(f"{len(mols)} molecules; energies in meV, dipoles in e Bohr, charges in e")
    harness.table(rows)
    return harness.finish(args.out, rows)


def errors(found: RKSResult, reference: RKSResult) -> dict[str, Any]:
    """Mean cycles, converged rows, and errors of those."""
    both = np.asarray(found.converged) & np.asarray(reference.converged)
    some = np.flatnonzero(both)

    def milli(name: str) -> np.ndarray:
        return 1e3 * HARTREE_TO_EV * (getattr(found, name) - getattr(reference, name))[both]

    def largest(name: str) -> list[float]:
        one, other = getattr(found, name), getattr(reference, name)
        return [np.abs(np.asarray(one[i]) - np.asarray(other[i])).max() for i in some]

    return {
        "count": float(np.mean(found.cycles)),
        "converged": int(np.sum(found.converged)),
        "energy": np.abs(milli("energy")).mean(),
        "bias": milli("energy").mean(),
        "gap": np.abs(milli("gap")).mean(),
        "gap_max": np.abs(milli("gap")).max(),
        "dipole": np.mean(largest("dipole")),
        "charges": np.mean(largest("mulliken_charges")),
    }


if __name__ == "__main__":
    sys.exit(main())
