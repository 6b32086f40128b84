"""`qm1b verify`: the audit of a dataset against PySCF."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from ..errors import UserError

EXIT_FAILED = 1


@dataclass(frozen=True)
class Verify:
    """Check all rows of a dataset, and recompute some with PySCF in float64.

    Exits with 1 if an invariant is broken or a bound is missed. The bounds are those of the
    precision and basis unless given here.
    """

    folder: tyro.conf.Positional[Path]
    """Folder of a qm1b generate."""
    sample: int = 100
    """Rows drawn at random to recompute; as many energy outliers at most come on top."""
    seed: int = 0
    """Another seed draws other rows."""
    workers: int = 0
    """PySCF processes; 0 for one a core."""
    thorough: bool = False
    """Look for a lower SCF state for every row, not only where the energy differs."""
    out: Path | None = None
    """Folder for verify.json and verify.png; if not given, the dataset's."""
    worst: int = 3
    """Worst rows of each quantity to print."""
    energy_mae_mev: float | None = None
    """Bound of the energy's mean absolute error in meV."""
    energy_max_mev: float | None = None
    """Bound of the energy's largest error in meV."""
    gap_mae_mev: float | None = None
    """Bound of the gap's mean absolute error in meV."""
    dipole_max_e_bohr: float | None = None
    """Bound of the dipole moment's largest error in e bohr."""
    higher_percent: float | None = None
    """Bound of the rows in a higher SCF state than PySCF's, in percent of the sample."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..verify import as_text, verify, write

        for name, least in (("sample", 1), ("seed", 0), ("workers", 0), ("worst", 0)):
            if getattr(self, name) < least:
                value = getattr(self, name)
                raise UserError(f"--{name} is {value}: it must be at least {least}.")
        out = self.out or self.folder
        if self.out is not None and not self.out.is_dir():
            raise UserError(f"folder {self.out} does not exist; make it first.")
        names = ("energy_mae_mev", "energy_max_mev", "gap_mae_mev", "dipole_max_e_bohr")
        bounds = {name: getattr(self, name) for name in (*names, "higher_percent")}
        audit = verify(
            self.folder, self.sample, self.seed, self.workers, bounds, self.thorough, _show
        )
        print(as_text(audit, self.worst))
        for path in write(audit, out):
            print(path)
        return EXIT_FAILED if audit.missed else 0


def _show(done: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\rPySCF {done}/{total}", end=end, file=sys.stderr, flush=True)
