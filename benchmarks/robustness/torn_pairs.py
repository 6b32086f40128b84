"""Do torn and pressed diatomics converge with two spins, and no higher than closed shells?

The 312 singlets of `states` by `uks`, each from its usual starts; with --stability every state is
followed down, which also ends what did not converge.  B3LYP/STO-3G and PBE/STO-3G, grid level 0.
"""

import sys
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.robustness.states_molecules import diatomics
from pyscf_ipu import rks, uks
from pyscf_ipu.base.units import HARTREE_TO_EV

HIGHER_EV = 0.01
"""Above the closed shell by more, a state is not the lowest."""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--limit", type=int, help="pairs, evenly from all")
    parser.add_argument("--xc", nargs="*", default=["b3lyp", "pbe"])
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--stability", action="store_true", help="follow every state down")
    args = parser.parse_args()
    parts = {
        xc: lambda xc=xc: torn(xc, args.precision, limit=args.limit, stability=args.stability)
        for xc in args.xc
    }
    return harness.run_parts(parts, args.xc, args.out)


def torn(
    xc: str, precision: str, *, limit: int | None, stability: bool
) -> tuple[dict[str, Any], list[str]]:
    """Figures of a functional, and the pairs above their closed shell."""
    named = harness.evenly(diatomics(), limit)
    molecules = [molecule for _, molecule in named]
    level: dict[str, Any] = {"xc": xc, "grid_level": 0, "precision": precision}
    ours, closed = uks(molecules, stability=stability, **level), rks(molecules, **level)
    both = np.asarray(ours.converged) & np.asarray(closed.converged)
    above = (np.asarray(ours.energy) - np.asarray(closed.energy)) * HARTREE_TO_EV
    higher = [named[i][0] for i in np.flatnonzero(both & (above > HIGHER_EV))]
    figures = {
        "pairs": len(named),
        "converged": int(np.sum(ours.converged)),
        "converged as closed shells": int(np.sum(closed.converged)),
        "lower than the closed shell": int(np.sum(both & (above < -HIGHER_EV))),
        "higher": len(higher),
        "did not converge": [
            n for (n, _), there in zip(named, ours.converged, strict=True) if not there
        ],
    }
    print(figures, flush=True)
    return figures, [f"{name}: above its closed shell" for name in higher]


if __name__ == "__main__":
    sys.exit(main())
