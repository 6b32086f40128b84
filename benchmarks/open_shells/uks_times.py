"""How much longer a radical takes by `uks` than its parent by `rks`: 9 heavy atoms, one core.

The radical is the parent without a hydrogen atom, so both have one shape; the parent by `uks`
shows what the two spins alone cost.  Pin it: taskset -c 0
"""

import sys
from functools import partial
from statistics import median
from typing import Any

from benchmarks import harness
from benchmarks.engine.throughput import CASES, chosen, radical
from pyscf_ipu import Molecule, Solver, rks, uks

BOUND = 2.2
"""Of the median time of a radical to that of its parent."""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "cases", ("qm1b", "forces", "6-31g*", "wb97x"))
    parser.add_argument("--limit", type=int, default=4, help="molecules")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    parts = {
        name: partial(case, name, args.limit, args.rounds)
        for name in ("qm1b", "forces", "6-31g*", "wb97x")
    }
    return harness.run_parts(parts, args.cases or ["qm1b", "wb97x"], args.out)


def case(name: str, limit: int, rounds: int) -> tuple[Any, list[str]]:
    """Ratios of a case of `throughput`, and whether the bound is missed."""
    solver = Solver(CASES[name].settings)
    rows = [
        times(solver, mol, rounds=rounds, forces=CASES[name].forces)
        for mol in chosen(CASES[name], limit)
    ]
    harness.table(rows)
    ratio = median(row["ratio"] for row in rows)
    print(f"{name}: {ratio:.2f} of the restricted, bound {BOUND}", flush=True)
    missed = [f"{ratio:.2f} of the restricted"] if ratio > BOUND else []
    return {"ratio": ratio, "rows": rows}, missed


def times(solver: Solver, mol: Molecule, rounds: int, forces: bool) -> dict[str, Any]:
    """Processor seconds of a parent and its radical; what compiles is left out."""
    calls = {
        "rks": partial(rks, mol, solver=solver, forces=forces),
        "uks of it": partial(uks, mol, solver=solver, forces=forces),
        "radical": partial(uks, radical(mol), solver=solver, forces=forces),
    }
    row: dict[str, Any] = {"smiles": mol.smiles}
    for name, call in calls.items():
        row[f"{name} cycles"] = int(call().cycles)
        row[name] = harness.processor_seconds(call, rounds)
    return row | {
        "ratio": row["radical"] / row["rks"],
        "of the same": row["uks of it"] / row["rks"],
    }


if __name__ == "__main__":
    sys.exit(main())
