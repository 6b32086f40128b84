"""What it costs to look whether every SCF ended in a minimum of the energy.

Conformers of QM9 molecules, all of one shape, in one single-threaded process: each batch plainly
and with stability=True, in turn.  The cost is the median of the additional time over the plain one.
"""

import statistics
from typing import Any

from benchmarks import harness, molecules
from benchmarks.pool import Pool
from pyscf_ipu import Settings, Solver
from qm1b.settings import PRESETS

BATCH, ROUNDS = 12, 25
MOST = 1.0
"""Additional time over the time of a conformer."""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    with Pool(1) as pool:
        figures = dict(pool.each(measured, [(PRESETS["qm1b"], args.rounds)]))[0]
    print(figures)
    cost = figures["cost"]
    missed = [f"costs {cost:.2f} of a conformer, {MOST} at most"] if cost > MOST else []
    return harness.finish(args.out, figures, missed)


def measured(level: Settings, rounds: int) -> dict[str, Any]:
    """Seconds of a conformer, and what looking adds to them."""
    solver = Solver(level)
    embedded = molecules.embed(molecules.smiles_of(molecules.QM9, 60))
    groups = harness.grouped(embedded, solver.shape)
    shape = max(groups, key=lambda one: len(groups[one]))
    batch = groups[shape][:BATCH]
    compiled = {kind: solver.compile(shape, kind) for kind in (False, True)}
    sides = {
        name: lambda stability=stability: harness.timed(
            lambda: solver.run(shape, batch, stability=stability)
        )
        for name, stability in (("plain", False), ("with stability", True))
    }
    found = harness.in_turn(sides, rounds + 1)  # the first one warms up
    plain, looked = ([t for t, _ in found[name][1:]] for name in sides)
    results = found["with stability"][-1][1]
    return {
        "aos": shape.n_ao,
        "conformers": len(batch),
        "stable": sum(bool(one.stable) for one in results),
        "plain_ms": 1e3 * statistics.median(plain) / len(batch),
        "cost": statistics.median(b / a - 1.0 for a, b in zip(plain, looked, strict=True)),
        "compile_seconds": [event.seconds if event else None for event in compiled.values()],
    }


if __name__ == "__main__":
    raise SystemExit(main())
