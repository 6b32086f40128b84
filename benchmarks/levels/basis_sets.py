"""Basis sets against PySCF: Hartree-Fock and omega-B97X, float64, grid level 0.

Those with f shells, polarised and diffuse ones; Pople's sets with the functions of Gaussian, of
which PySCF gets f shells spherical by a transformation of its cartesian ones.
"""

import sys

from benchmarks import harness, molecules
from benchmarks.levels import comparison
from pyscf_ipu import Settings

CARTS = {
    "def2-tzvppd": False,
    "aug-cc-pvdz": False,
    "cc-pvtz": False,
    "def2-tzvpd": False,
    "def2-tzvp": False,
    "6-31g(2df,p)": "6d7f",
    "6-311g**": True,
    "6-31+g*": True,
    "dzvp": False,
    "def2-mtzvp": False,
    "def2-mtzvpp": False,
}
SMILES = [*molecules.FEW, *molecules.CHLORINE]


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "basis", CARTS)
    comparison.add_options(parser, len(SMILES))
    args = parser.parse_args()
    levels = [
        Settings(basis=basis, xc=xc, precision="float64", grid_level=0, cart=CARTS[basis])
        for basis in args.basis or CARTS
        for xc in ("hf", "wb97x")
    ]
    return comparison.run(levels, molecules.embed(SMILES[: args.limit]), args)


if __name__ == "__main__":
    sys.exit(main())
