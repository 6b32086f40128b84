"""What QM1B's own filter would have dropped, and how often that would have been wrong.

QM1B kept a row of 20 cycles if its last five energies had a standard deviation of at most 0.01 eV
and its gap was not zero (arXiv:2311.01135, and the datasheet of the dataset). This is that rule on
our numbers (`qm1b.formats.spread`). An audited row (`--audit`) has PySCF's energy too, and is wrong
if it differs by more than rounding.
"""

from dataclasses import dataclass

import numpy as np

from pyscf_ipu.base.terminal import counted
from pyscf_ipu.base.units import HARTREE_TO_EV
from qm1b.formats.spread import published_std
from qm1b.rows.batch import Batch
from qm1b.rows.schema import CONVERGED, Json

MOST_STD_EV = 0.01
"""Standard deviation of the last five energies, above which QM1B dropped a row."""

WRONG_EV = 0.01
"""A difference from PySCF above this is another state, not rounding."""

FIELDS = ("energy_std", "reference_energy")


@dataclass
class PublishedFilter:
    """Counts of rows by the filter's verdict and by ours, and by PySCF's where there is one."""

    rows: int = 0
    by_std: int = 0
    """Rows that the filter drops for the spread of their energies."""
    by_gap: int = 0
    """Rows that it drops for having no gap."""
    dropped: int = 0
    """Rows that it drops for either."""
    dropped_converged: int = 0
    """Those of them that our own test calls converged."""
    kept_not_converged: int = 0
    """Rows that it keeps and our own test does not."""
    audited: int = 0
    """Rows with PySCF's energy."""
    kept_wrong: int = 0
    """Audited rows that it keeps although the energy is wrong."""
    dropped_right: int = 0
    """Audited rows that it drops although the energy is right."""

    def add(self, batch: Batch, settings: Json) -> None:
        """Count the rows of a batch with the spread of the last energies, of a run of settings."""
        if "energy_std" not in batch:
            return
        spread = published_std(batch, settings) * HARTREE_TO_EV
        by_std = ~(spread <= MOST_STD_EV)  # NaN is no sign of convergence
        by_gap = ~(batch["lumo"] - batch["homo"] != 0)
        drops = by_std | by_gap
        good = batch["status"] == CONVERGED if "status" in batch else ~drops
        self.rows += len(batch)
        self.by_std += int(by_std.sum())
        self.by_gap += int(by_gap.sum())
        self.dropped += int(drops.sum())
        self.dropped_converged += int((drops & good).sum())
        self.kept_not_converged += int((~drops & ~good).sum())
        if "reference_energy" in batch:
            error = np.abs(batch["energy"] - batch["reference_energy"]) * HARTREE_TO_EV
            known = np.isfinite(error)
            self.audited += int(known.sum())
            self.kept_wrong += int((known & ~drops & (error > WRONG_EV)).sum())
            self.dropped_right += int((known & drops & (error <= WRONG_EV)).sum())

    def to_dict(self) -> dict[str, int]:
        """Plain values, for JSON."""
        return dict(vars(self))

    def as_text(self) -> list[str]:
        """The counts in words; nothing if no row has the spread of its last energies."""
        if not self.rows:
            return []
        lines = [
            f"QM1B's own filter (std > {MOST_STD_EV} eV, gap 0) would drop "
            f"{self.dropped} of {counted(self.rows, 'row')} ({self.by_std} by std, {self.by_gap} "
            f"by gap): {self.dropped_converged} of them converged; it would keep "
            f"{self.kept_not_converged} that did not"
        ]
        if self.audited:
            share = 100 * self.kept_wrong / self.audited
            lines.append(
                f"  by the audit of {counted(self.audited, 'row')}: {self.kept_wrong} kept that "
                f"are wrong by more than {1e3 * WRONG_EV:.0f} meV ({share:.2g} %), "
                f"{self.dropped_right} dropped that are right"
            )
        return lines
