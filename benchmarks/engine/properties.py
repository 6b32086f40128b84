"""What the columns of `qm1b generate --properties` cost, as a share of a row's processor time.

Octanoic acid (59 AOs at QM1B's level, like the molecule of docs/lab-notes.md), one thread.
"""

import os
import sys
from collections.abc import Callable

from benchmarks import harness
from pyscf_ipu import Molecule, Settings, Solver
from qm1b.rows.schema import PROPERTIES

ROUNDS = 10
BOUND = 0.15
"""Of a row, for all of them together."""


def main() -> int:
    args = harness.parser(__doc__, __file__).parse_args()
    solver = Solver(Settings.preset("qm1b"))
    molecule = Molecule.from_smiles("CCCCCCC(=O)O", seed=0)
    shape = solver.shape(molecule)
    batch = [molecule] * min(4, solver.batch_size(shape))
    (result, *_) = solver.run(shape, batch, orbitals=True)

    def reading(names: tuple[str, ...]) -> Callable[[], None]:
        def read() -> None:
            vars(result).pop("_densities", None)  # what properties have in common
            for name in names:
                getattr(result, name)

        return read

    row = harness.processor_seconds(lambda: solver.run(shape, batch), ROUNDS) / len(batch)
    figures = {"row_seconds": row}
    for names in (*((name,) for name in PROPERTIES), PROPERTIES):
        share = harness.processor_seconds(reading(names), ROUNDS) / row
        figures[" ".join(names)] = share
        harness.table([{"properties": " ".join(names), "share": share}])
    largest = figures[" ".join(PROPERTIES)]
    missed = [f"all properties {largest:.2g} of a row"] if largest > BOUND else []
    return harness.finish(args.out, figures, missed)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
