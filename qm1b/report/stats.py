"""Statistics of a dataset: counts, and the distributions of its quantities."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pyscf_ipu.base.terminal import counted, text_table
from pyscf_ipu.base.units import FORCE_TO_EV_PER_ANGSTROM, FORCE_TO_MEV_PER_ANGSTROM, HARTREE_TO_EV
from pyscf_ipu.elements.spellings import SYMBOLS
from qm1b.formats.load import load
from qm1b.report.distribution import Distribution
from qm1b.report.published_filter import FIELDS as _OF_FILTER
from qm1b.report.published_filter import PublishedFilter
from qm1b.rows.batch import Batch
from qm1b.rows.identity import distinct
from qm1b.rows.schema import CONVERGED

NET_FORCE, TORQUE = "net_force_mev_angstrom", "torque_mev"
"""Quantities whose value is an error: their largest component."""


@dataclass(frozen=True)
class RowQuantity:
    """A number of each row whose distribution is of interest; see `Distribution`."""

    name: str
    title: str
    of: Callable[[Batch], np.ndarray]
    """Its values [R]; raises KeyError if the dataset lacks a field."""
    whole: bool = False


def largest_forces(batch: Batch) -> np.ndarray:
    """[R] The largest force on an atom of each row, in eV/Angstrom."""
    norms = np.linalg.norm(batch["forces"], axis=1) * FORCE_TO_EV_PER_ANGSTROM
    return np.maximum.reduceat(norms, batch["atom_offset"][:-1])


def cycles_to_1_mev(batch: Batch) -> np.ndarray:
    """[R] The cycle from which on the energy is within 1 meV of the last one; NaN if not kept."""
    energies, offsets = batch["cycle_energy"], batch["cycle_offset"]
    cycles = np.full(len(batch), np.nan)
    for row in np.flatnonzero(np.diff(offsets)):
        of_row = energies[offsets[row] : offsets[row + 1]]
        far = np.flatnonzero(~(np.abs(of_row - of_row[-1]) * HARTREE_TO_EV < 1e-3))
        cycles[row] = far[-1] + 2 if len(far) else 1
    return cycles


QUANTITIES = (
    RowQuantity("gap_ev", "gap (eV)", lambda b: (b["lumo"] - b["homo"]) * HARTREE_TO_EV),
    RowQuantity("homo_ev", "HOMO (eV)", lambda b: b["homo"] * HARTREE_TO_EV),
    RowQuantity("lumo_ev", "LUMO (eV)", lambda b: b["lumo"] * HARTREE_TO_EV),
    RowQuantity(
        "energy_per_atom_ev",
        "total energy per atom (eV)",
        lambda b: b["energy"] * HARTREE_TO_EV / np.diff(b["atom_offset"]),
    ),
    RowQuantity(
        "atomisation_per_atom_ev",
        "atomisation energy per atom (eV)",
        lambda b: b["atomisation_energy"] * HARTREE_TO_EV / np.diff(b["atom_offset"]),
    ),
    RowQuantity("dispersion_ev", "dispersion (eV)", lambda b: b["dispersion"] * HARTREE_TO_EV),
    RowQuantity("atoms", "atoms", lambda b: np.diff(b["atom_offset"]), whole=True),
    RowQuantity("aos", "atomic orbitals", lambda b: b["n_ao"], whole=True),
    RowQuantity("cycles", "SCF cycles", lambda b: b["cycles"], whole=True),
    RowQuantity("cycles_to_1_mev", "cycles to within 1 meV", cycles_to_1_mev, whole=True),
    RowQuantity(
        "dipole_norm_e_bohr",
        "dipole moment (e bohr)",
        lambda b: np.linalg.norm(b["dipole"], axis=1),
    ),
    RowQuantity("max_force_ev_angstrom", "largest force on an atom (eV/Å)", largest_forces),
    RowQuantity(
        NET_FORCE,
        "net force (meV/Å)",
        lambda b: np.abs(b["net_force"]).max(axis=1) * FORCE_TO_MEV_PER_ANGSTROM,
    ),
    RowQuantity(
        TORQUE, "torque (meV)", lambda b: np.abs(b["torque"]).max(axis=1) * 1e3 * HARTREE_TO_EV
    ),
)

_LABELS = ("embedding", "relaxation", "suspect", "torn")
_FIELDS = "smiles seed status energy atomisation_energy homo lumo dipole n_ao".split()
_FIELDS += "cycles numbers attempts forces dispersion cycle_energy net_force torque".split()
_STABILITY = ("stable", "followed")


@dataclass
class Statistics:
    """Counts over all rows, distributions over the converged ones."""

    rows: int = 0
    converged: int = 0
    molecules: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    elements: Counter[str] = field(default_factory=Counter)
    """Rows with at least one atom of the element."""
    labels: dict[str, Counter[str]] = field(default_factory=dict)
    """Rows with each value of a field: the origin of the geometry, why the result is suspect."""
    rungs: Counter[str] = field(default_factory=Counter)
    """Converged rows by the attempt that converged: plain, or a rung of the retry ladder."""
    stability: Counter[str] = field(default_factory=Counter)
    """Converged rows whose stability was looked at: stable, unstable, and those of them that were
    followed to a lower state."""
    distributions: list[Distribution] = field(default_factory=list)
    published_filter: PublishedFilter = field(default_factory=PublishedFilter)
    """What QM1B's own filter would have dropped."""

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "rows": self.rows,
            "converged": self.converged,
            "molecules": self.molecules,
            "statuses": dict(self.statuses.most_common()),
            "labels": {name: dict(counts) for name, counts in self.labels.items()},
            "rungs": dict(self.rungs.most_common()),
            "stability": dict(self.stability),
            "published_filter": self.published_filter.to_dict(),
            "rows_with_element": dict(self.elements.most_common()),
            "distributions": {d.name: d.to_dict() for d in self.distributions},
        }


def collect(path: Path) -> Statistics:
    """Statistics over every row of any dataset that `load` reads, one part at a time.

    64-bit hashes count the molecules, whose frames may be anywhere in the dataset.

    Raises:
        UserError: there is no dataset, or it is damaged.
    """
    stats = Statistics(distributions=[Distribution(q.name, q.title, q.whole) for q in QUANTITIES])
    molecules = set[int]()
    data = load(path, [*_FIELDS, *_LABELS, *_STABILITY, *_OF_FILTER])
    for batch in data.batches():
        if not len(batch):
            continue
        molecules |= distinct(batch)
        stats.rows += len(batch)
        stats.published_filter.add(batch, data.metadata.get("settings", {}))
        good = np.ones(len(batch), dtype=bool)  # all rows of QM1B's own files converged
        if "status" in batch:
            stats.statuses.update(text.split(":")[0] for text in batch["status"])
            good = batch["status"] == CONVERGED
        for name in _LABELS:
            if name in batch:
                texts = stats.labels.setdefault(name, Counter())
                texts.update(str(text) for text in batch[name] if text)
        _add(stats, batch.take(np.flatnonzero(good)))
    stats.molecules = len(molecules)
    stats.distributions = [d for d in stats.distributions if d.count]
    return stats


def _add(stats: Statistics, batch: Batch) -> None:
    """Add the converged rows of a batch to the distributions."""
    stats.converged += len(batch)
    if "attempts" in batch:
        # The last attempt is the one that converged (`ladder.climb`).
        last = (text.split(" ")[-1].split(":")[0] for text in batch["attempts"])
        stats.rungs.update(name for name in last if name)
    if all(name in batch for name in _STABILITY):
        looked = {"stable": 1, "unstable": 0}
        stats.stability += Counter(
            {k: int((batch["stable"] == v).sum()) for k, v in looked.items()}
        )
        stats.stability += Counter(followed=int((batch["followed"] > 0).sum()))
    for quantity, distribution in zip(QUANTITIES, stats.distributions, strict=True):
        with suppress(KeyError):
            distribution.add(quantity.of(batch))
    row = np.repeat(np.arange(len(batch)), np.diff(batch["atom_offset"]))
    pairs = np.unique(row * 256 + batch["numbers"])
    for z, n in zip(*np.unique(pairs % 256, return_counts=True), strict=True):
        stats.elements[SYMBOLS[z]] += int(n)


def as_text(stats: Statistics) -> str:
    """The numbers as a table."""
    table = [["converged rows", "mean", "std", "min", "5 %", "median", "95 %", "max"]]
    for d in stats.distributions:
        low, middle, high = np.percentile(d.sample, (5, 50, 95))
        values = (d.mean, d.std, d.least, low, middle, high, d.most)
        table.append([d.name, *(f"{value:.4f}" for value in values)])
    lines = [
        f"{counted(stats.rows, 'row')} of {counted(stats.molecules, 'molecule')}, "
        f"{stats.converged} converged",
        *text_table(stats.statuses.most_common(), "<18 <", indent="  "),
        *(f"{name}: {counts(texts)}" for name, texts in stats.labels.items() if texts),
        *([f"converged in: {counts(stats.rungs)}"] if stats.rungs else []),
        *([f"stability: {counts(stats.stability)}"] if stats.stability else []),
        *stats.published_filter.as_text(),
        f"rows with element: {counts(stats.elements)}",
        *text_table(table, "<24 >12 >11 >12 >12 >12 >12 >12", gap=""),
    ]
    return "\n".join(lines)


def counts(counter: Counter[str]) -> str:
    """Names and counts as text, the largest count first."""
    return ", ".join(f"{name} {n}" for name, n in counter.most_common())
