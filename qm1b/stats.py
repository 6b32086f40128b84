"""What a dataset looks like: counts, and how its quantities are distributed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pyscf_ipu.molecule import SYMBOLS
from pyscf_ipu.units import HARTREE_TO_EV

from .batch import Batch
from .distribution import Distribution
from .molecules import distinct
from .reading import load
from .schema import CONVERGED


@dataclass(frozen=True)
class Quantity:
    """A number of each row that has a distribution."""

    name: str
    title: str
    needs: tuple[str, ...]
    of: Callable[[Batch], np.ndarray]
    whole: bool = False


QUANTITIES = (
    Quantity(
        "gap_ev",
        "gap (eV)",
        ("homo", "lumo"),
        lambda b: (b["lumo"] - b["homo"]) * HARTREE_TO_EV,
    ),
    Quantity("homo_ev", "HOMO (eV)", ("homo",), lambda b: b["homo"] * HARTREE_TO_EV),
    Quantity("lumo_ev", "LUMO (eV)", ("lumo",), lambda b: b["lumo"] * HARTREE_TO_EV),
    Quantity(
        "energy_per_atom_ev",
        "total energy per atom (eV)",
        ("energy", "numbers"),
        lambda b: b["energy"] * HARTREE_TO_EV / np.diff(b["atom_offset"]),
    ),
    Quantity("atoms", "atoms", ("numbers",), lambda b: np.diff(b["atom_offset"]), whole=True),
    Quantity("aos", "atomic orbitals", ("n_ao",), lambda b: b["n_ao"], whole=True),
    Quantity("cycles", "SCF cycles", ("cycles",), lambda b: b["cycles"], whole=True),
    Quantity(
        "dipole_norm_e_bohr",
        "dipole moment (e bohr)",
        ("dipole",),
        lambda b: np.linalg.norm(b["dipole"], axis=1),
    ),
)

_LABELS = ("embedding", "relaxation", "suspect")
_FIELDS = (
    *("smiles", "seed", "status", "energy", "homo", "lumo", "dipole", "n_ao", "cycles", "numbers"),
    "attempts",
    *_LABELS,
)


@dataclass
class Stats:
    """Counts over all rows, distributions over the converged ones."""

    rows: int = 0
    converged: int = 0
    molecules: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    elements: Counter[str] = field(default_factory=Counter)
    """Rows with at least one atom of the element."""
    labels: dict[str, Counter[str]] = field(default_factory=dict)
    """Rows with each text of a field: how the geometry was made, why the result is suspect."""
    rungs: Counter[str] = field(default_factory=Counter)
    """Converged rows by the attempt that they are of: plain, or a rung of the retry ladder."""
    distributions: list[Distribution] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "rows": self.rows,
            "converged": self.converged,
            "molecules": self.molecules,
            "statuses": dict(self.statuses.most_common()),
            "labels": {name: dict(counts) for name, counts in self.labels.items()},
            "rungs": dict(self.rungs.most_common()),
            "rows_with_element": dict(self.elements.most_common()),
            "distributions": {d.name: d.to_dict() for d in self.distributions},
        }


def collect(path: Path) -> Stats:
    """Look at every row of anything that `load` reads, a part at a time.

    Molecules are told apart by 64-bit hashes: frames of one may stand anywhere.

    Raises:
        UserError: there is no dataset, or it is damaged.
    """
    stats = Stats(distributions=[Distribution(q.name, q.title, q.whole) for q in QUANTITIES])
    molecules = set[int]()
    for batch in load(path, _FIELDS).batches():
        if not len(batch):
            continue
        molecules |= distinct(batch)
        stats.rows += len(batch)
        good = np.ones(len(batch), dtype=bool)  # QM1B's own files hold nothing else
        if "status" in batch:
            stats.statuses.update(text.split(":")[0] for text in batch["status"])
            good = batch["status"] == CONVERGED
        for name in _LABELS:
            if name in batch:
                counts = stats.labels.setdefault(name, Counter())
                counts.update(text for text in batch[name] if text)
        _add(stats, batch.take(np.flatnonzero(good)))
    stats.molecules = len(molecules)
    stats.distributions = [d for d in stats.distributions if d.count]
    return stats


def _add(stats: Stats, batch: Batch) -> None:
    """The converged rows of a batch into the distributions."""
    stats.converged += len(batch)
    if "attempts" in batch:
        # The ladder ends with the attempt that converged (`ladder.climb`).
        last = (text.split(" ")[-1].split(":")[0] for text in batch["attempts"])
        stats.rungs.update(name for name in last if name)
    for quantity, distribution in zip(QUANTITIES, stats.distributions, strict=True):
        if all(name in batch for name in quantity.needs):
            distribution.add(quantity.of(batch))
    row = np.repeat(np.arange(len(batch)), np.diff(batch["atom_offset"]))
    pairs = np.unique(row * 256 + batch["numbers"])
    for z, n in zip(*np.unique(pairs % 256, return_counts=True), strict=True):
        stats.elements[SYMBOLS[z]] += int(n)


def as_text(stats: Stats) -> str:
    """The numbers as a table."""
    lines = [
        f"{stats.rows} rows of {stats.molecules} molecules, {stats.converged} converged",
        *(f"  {name:<18} {n}" for name, n in stats.statuses.most_common()),
        *(f"{name}: {_counts(counts)}" for name, counts in stats.labels.items() if counts),
        *([f"converged in: {_counts(stats.rungs)}"] if stats.rungs else []),
        f"rows with element: {_counts(stats.elements)}",
        f"{'converged rows':<20}{'mean':>12}{'std':>11}{'min':>12}{'5 %':>12}{'median':>12}"
        f"{'95 %':>12}{'max':>12}",
    ]
    for d in stats.distributions:
        low, middle, high = np.percentile(d.sample, (5, 50, 95))
        values = (d.least, low, middle, high, d.most)
        lines.append(
            f"{d.name:<20}{d.mean:12.4f}{d.std:11.4f}" + "".join(f"{v:12.4f}" for v in values)
        )
    return "\n".join(lines)


def _counts(found: Counter[str]) -> str:
    return ", ".join(f"{name} {n}" for name, n in found.most_common())
