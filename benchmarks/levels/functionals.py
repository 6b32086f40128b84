"""Every functional against PySCF: float64, STO-3G and 6-31G*, grid level 0, without dispersion.

PySCF goes by libxc numbers.  Needs the extra `dispersion`, as four functionals have a correction of
their own, which is then taken off.
"""

import sys

from benchmarks import harness, molecules
from benchmarks.levels import comparison
from pyscf_ipu import Settings
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS

BASES = ("sto-3g", "6-31g*")
SMILES = [*molecules.FEW, "CC", "C#C", "OO", "NN", *molecules.CHLORINE]


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "functionals", FUNCTIONALS)
    parser.add_argument("--basis", nargs="*", choices=BASES, default=BASES)
    comparison.add_options(parser, len(SMILES))
    args = parser.parse_args()
    levels = [
        Settings(basis=basis, xc=xc, precision="float64", grid_level=0)
        for basis in reversed(args.basis)
        for xc in args.functionals or FUNCTIONALS
    ]
    return comparison.run(levels, molecules.embed(SMILES[: args.limit]), args)


if __name__ == "__main__":
    sys.exit(main())
