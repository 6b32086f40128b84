"""`qm1b verify`: the audit of a dataset against PySCF."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
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
    charge_max_e: float | None = None
    """Bound of the largest error of an atom's Mulliken charge in e."""
    homo_mae_mev: float | None = None
    """Bound of the HOMO's mean absolute error in meV."""
    homo_max_mev: float | None = None
    """Bound of the HOMO's largest error in meV."""
    lumo_mae_mev: float | None = None
    """Bound of the LUMO's mean absolute error in meV."""
    lumo_max_mev: float | None = None
    """Bound of the LUMO's largest error in meV."""
    higher_percent: float | None = None
    """Bound of the rows in a higher SCF state than PySCF's, in percent of the sample."""
    lower_percent: float | None = None
    """Bound of the rows below PySCF's energy, in percent of the sample, and of the outliers."""
    not_compared_percent: float | None = None
    """Bound of the rows for which PySCF gives nothing, in percent of all recomputed."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..comparison import Bounds
        from ..verify import as_text, verify, write

        for name, least in (("sample", 1), ("seed", 0), ("workers", 0), ("worst", 0)):
            if getattr(self, name) < least:
                value = getattr(self, name)
                raise UserError(f"--{name} is {value}: it must be at least {least}.")
        out = self.out or self.folder
        if self.out is not None and not self.out.is_dir():
            raise UserError(f"folder {self.out} does not exist; make it first.")
        bounds = {f.name: getattr(self, f.name) for f in fields(Bounds)}
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
