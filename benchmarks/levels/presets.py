"""Every preset against PySCF at the same level, in float64, without dispersion."""

import sys
from dataclasses import replace

from benchmarks import harness, molecules
from benchmarks.levels import comparison
from pyscf_ipu import Settings
from pyscf_ipu.settings import PRESETS


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "presets", PRESETS)
    parser.add_argument("--elements", action="store_true", help="with ten elements, and anions")
    comparison.add_options(parser, len(molecules.ELEMENTS))
    args = parser.parse_args()
    levels = [
        replace(Settings.preset(name), precision="float64") for name in args.presets or PRESETS
    ]
    smiles = molecules.ELEMENTS if args.elements else molecules.FEW
    return comparison.run(levels, molecules.embed(smiles[: args.limit]), args)


if __name__ == "__main__":
    sys.exit(main())
