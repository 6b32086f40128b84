"""What the columns of `qm1b generate --properties` cost, as a share of a row's processor time.

Octanoic acid (59 AOs at QM1B's level, like the molecule of docs/lab-notes.md), one thread.
"""

import os
import sys

from benchmarks import harness
from pyscf_ipu import Molecule, Settings, Solver

ROUNDS = 10
BOUND = 0.15
"""Of a row."""


def main() -> int:
    args = harness.parser(__doc__, __file__).parse_args()
    solver = Solver(Settings.preset("qm1b"))
    molecule = Molecule.from_smiles("CCCCCCC(=O)O", seed=0)
    shape = solver.shape(molecule)
    batch = [molecule] * min(4, solver.batch_size(shape))
    (result, *_) = solver.run(shape, batch, orbitals=True)

    def read() -> None:
        vars(result).pop("_analyses", None)  # which a result keeps
        _ = result.quadrupole

    row = harness.processor_seconds(lambda: solver.run(shape, batch), ROUNDS) / len(batch)
    share = harness.processor_seconds(read, ROUNDS) / row
    figures = {"row_seconds": row, "share": share}
    harness.table([figures])
    missed = [f"properties {share:.2g} of a row"] if share > BOUND else []
    return harness.finish(args.out, figures, missed)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
