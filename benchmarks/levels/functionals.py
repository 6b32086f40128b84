"""Every functional against PySCF: float64, STO-3G and 6-31G*, grid level 0, without dispersion.

VV10 has grid level 0, too: at level 3 PySCF takes minutes for a molecule of two heavy atoms.
PySCF goes by libxc numbers.  Composite methods have their own basis.  Needs the extra `dispersion`,
as six functionals have a correction of their own, which is then taken off.
"""

import sys

from benchmarks import harness, molecules
from benchmarks.levels import comparison
from pyscf_ipu import Settings
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS, OWN_BASIS

BASES = ("sto-3g", "6-31g*")
SMILES = [*molecules.FEW, "CC", "C#C", "OO", "NN", *molecules.CHLORINE]


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "functionals", FUNCTIONALS)
    parser.add_argument("--basis", nargs="*", choices=BASES, default=BASES)
    comparison.add_options(parser, len(SMILES))
    args = parser.parse_args()
    names = args.functionals or FUNCTIONALS
    levels = [
        Settings(basis=basis, xc=xc, precision="float64", grid_level=0, nlc_grid=0)
        for basis in reversed(args.basis)
        for xc in names
        if xc not in OWN_BASIS
    ]
    composite = [xc for xc in names if xc in OWN_BASIS]
    levels += [Settings(xc=xc, precision="float64", grid_level=0) for xc in composite]
    return comparison.run(levels, molecules.embed(SMILES[: args.limit]), args)


if __name__ == "__main__":
    sys.exit(main())
