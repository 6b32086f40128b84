"""Seconds that a cold program takes to compile, energy and forces, on one core: taskset -c 0.

Processor time of tracing, lowering and XLA; nothing is read from the disk or kept there.  The first
level has what JAX makes ready once a process, so name one alone to compare it.
"""

import os
import sys
from dataclasses import replace

from benchmarks import harness
from pyscf_ipu import Molecule, Settings, Solver

LEVELS = {
    "qm1b": (Settings(xc="b3lyp5", grid_level=0), "CCC1CC1OCC=O"),
    "openff": (replace(Settings.preset("openff"), jk="ri"), "CC(=O)NC"),
    "spice": (replace(Settings.preset("spice"), jk="ri"), "CC(=O)NC"),
    "omol25": (replace(Settings.preset("omol25"), jk="ri"), "CC(=O)NC"),
}


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "levels", LEVELS)
    args = parser.parse_args()
    os.environ["PYSCF_IPU_CACHE"] = "off"
    rows = []
    for name in args.levels or LEVELS:
        level, smiles = LEVELS[name]
        solver, mol = Solver(level), Molecule.from_smiles(smiles, seed=0)
        shape = solver.shape(mol)
        energy = harness.processor_seconds(lambda s=solver, x=shape: s.compile(x), 1)
        forces = harness.processor_seconds(lambda s=solver, x=shape: s.compile_gradient(x), 1)
        rows.append({"level": name, "aos": shape.n_ao, "energy_s": energy, "forces_s": forces})
        harness.table(rows[-1:])
    return harness.finish(args.out, {"seconds": rows})


if __name__ == "__main__":
    sys.exit(main())
