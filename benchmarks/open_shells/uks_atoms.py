"""Free atoms against NIST's tables of the local spin density approximation.

S. Kotochigova, Z. H. Levine, E. L. Shirley, M. D. Stiles, C. W. Clark, Phys. Rev. A 55, 191 (1997),
doi:10.1103/PhysRevA.55.191, solved radial equations without a basis, with the same functional.
Their atoms are spheres, so these are atoms of closed and of half-filled shells.  What is left is
the error of the basis set, uncontracted s and p functions, above the table's energy.
"""

import sys
from typing import Any

from benchmarks import harness
from pyscf_ipu import Molecule, Settings, Solver, uks

ATOMS = {
    "H": (2, -0.478671),
    "He": (1, -2.834836),
    "Li": (2, -7.343957),
    "Be": (1, -14.447209),
    "N": (4, -54.136799),
    "Ne": (1, -128.233481),
    "Na": (2, -161.447625),
    "Mg": (1, -199.139406),
    "P": (4, -340.005799),
    "Ar": (1, -525.946195),
}
"""Multiplicity, and the total energy in Hartree."""
LEVEL = Settings(xc="lda", basis="dyall4zp", grid_level=5, precision="float64")
BOUND_HARTREE = 2e-4


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "atoms", ATOMS)
    parser.add_argument("--basis", default=LEVEL.basis)
    args = parser.parse_args()
    level = Settings.from_dict({**LEVEL.to_dict(), "basis": args.basis})
    rows = [compared(name, level) for name in args.atoms or ATOMS]
    harness.table(rows)
    missed = [row["atom"] for row in rows if not abs(row["above_hartree"]) <= BOUND_HARTREE]
    return harness.finish(args.out, {"rows": rows}, missed)


def compared(name: str, level: Settings) -> dict[str, Any]:
    """Our energy above the table's."""
    multiplicity, energy = ATOMS[name]
    mol = Molecule.from_symbols([name], [[0.0, 0.0, 0.0]], unit="bohr", multiplicity=multiplicity)
    ours = uks(mol, solver=Solver(level))
    return {
        "atom": name,
        "energy": float(ours.energy),
        "above_hartree": float(ours.energy) - energy,
        "s_squared": float(ours.s_squared or 0.0),
        "status": ours.status,
    }


if __name__ == "__main__":
    sys.exit(main())
