"""What must hold for every row of a dataset, whatever was computed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from . import store
from .batch import Batch
from .completeness import missing_units, ranges
from .schema import CONVERGED, DROP_FIELDS, FIELDS

EXAMPLES = 5
ORBITAL_TOLERANCE_HARTREE = 1e-6
CHARGE_TOLERANCE_E = 1e-3


@dataclass
class Violation:
    """How often an invariant is broken, and where."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, count: int, examples: list[str]) -> None:
        """Count some more."""
        self.count += count
        self.examples += examples[: EXAMPLES - len(self.examples)]


@dataclass
class Invariants:
    """Checks of all rows, shard by shard. Keeps 20 bytes a row, to find duplicates."""

    fingerprint: str
    violations: dict[str, Violation] = field(default_factory=dict)
    rows: int = 0
    units: set[int] = field(default_factory=set)
    statuses: Counter[str] = field(default_factory=Counter)
    drops: Counter[str] = field(default_factory=Counter)
    coinciding: int = 0
    """Conformers with the geometry of another one of their line, which is no fault."""
    _seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Every invariant is in the report, broken or not."""
        for name in (*ROW_CHECKS, *FILE_CHECKS):
            self.violations[name] = Violation()

    def add(self, path: Path, batch: Batch) -> bool:
        """Check a shard; returns whether its rows can be told from each other."""
        self.rows += len(batch)
        self.units.add(store.unit_of(path))
        self.statuses.update(text.split(":")[0] for text in batch["status"])
        self.drops.update(drop.reason for drop in store.read_drops(path))
        problems = _file_problems(path, batch, self.fingerprint)
        for name, found in problems.items():
            self.violations[name].add(len(found), [f"{path.name}: {p}" for p in found])
        if problems["offsets"]:
            return False
        for name, check in ROW_CHECKS.items():
            bad = np.flatnonzero(check(batch))
            self.violations[name].add(len(bad), [_place(batch, i) for i in bad[:EXAMPLES].tolist()])
        self._seen.append((batch["line"], batch["conformer"], geometry_hashes(batch)))
        return True

    def compare(self, manifest: Mapping[str, Any]) -> None:
        """Hold the shards that were added, as all of a folder, against what its manifest counts."""
        missing = missing_units(manifest, self.units)
        where = [f"units {ranges(missing)}, the run is {manifest['status']}"] if missing else []
        self.violations["missing_shard"].add(len(missing), where)
        if manifest["status"] == "running":  # or killed: the counts are behind the shards
            return
        counts = manifest["counts"]
        ours = {"rows": self.rows, "statuses": dict(self.statuses), "dropped": dict(self.drops)}
        for name, value in ours.items():
            if value != counts[name]:
                where = f"{name} {value}, the manifest has {counts[name]}"
                self.violations["counts"].add(1, [where])

    def finish(self) -> dict[str, Violation]:
        """Look for duplicates among all rows; returns every invariant with its violations."""
        if self._seen:
            line, conformer, geometry = map(np.concatenate, zip(*self._seen, strict=True))
            self._seen.clear()
            row = line * 2**24 + conformer
            order = np.argsort(row, kind="stable")
            again = {"duplicate_row": order[1:][_same(row[order])]}
            order = np.lexsort((row, geometry))
            # Relaxation may lead conformers of a line to one minimum, and an atom has but one.
            sibling = _same(line[order]) & ~_same(row[order])
            equal = _same(geometry[order])
            self.coinciding = int(np.sum(equal & sibling))
            again["duplicate_geometry"] = order[1:][equal & ~sibling]
            for name, rows in again.items():
                where = [f"line {line[i]}, conformer {conformer[i]}" for i in rows[:EXAMPLES]]
                self.violations[name].add(len(rows), where)
        return self.violations


def electrons(batch: Batch) -> np.ndarray:
    """[R] Electrons of each row."""
    return _sums(batch["numbers"].astype(np.int64), batch["atom_offset"]) - batch["charge"]


def geometry_hashes(batch: Batch) -> np.ndarray:
    """[R] 64 bits of each row's elements, positions and charge."""
    offsets, numbers, positions = batch["atom_offset"], batch["numbers"], batch["positions"]
    found = np.empty(len(batch), dtype=np.uint64)
    for i, charge in enumerate(batch["charge"].tolist()):
        a, b = offsets[i : i + 2]
        text = numbers[a:b].tobytes() + positions[a:b].tobytes() + bytes([charge % 256])
        digest = hashlib.blake2b(text, digest_size=8).digest()
        found[i] = int.from_bytes(digest, "little")
    return found


def _converged(batch: Batch) -> np.ndarray:
    return batch["status"] == CONVERGED


def _has_lumo(batch: Batch) -> np.ndarray:
    return electrons(batch) // 2 < batch["n_ao"]


def _not_finite(batch: Batch) -> np.ndarray:
    """A converged row with a number that is none; no LUMO is no fault without empty orbitals."""
    names = ("energy", "homo", "energy_std", "commutator_norm")
    bad = ~np.stack([np.isfinite(batch[name]) for name in names]).all(axis=0)
    bad |= ~np.isfinite(batch["dipole"]).all(axis=1)
    bad |= _any(~np.isfinite(batch["mulliken_charges"]), batch["atom_offset"])
    bad |= _has_lumo(batch) & ~np.isfinite(batch["lumo"])
    bad |= _any(~np.isfinite(batch["mo_energy"]), batch["orbital_offset"])
    return _converged(batch) & bad


def _bad_positions(batch: Batch) -> np.ndarray:
    finite = np.asarray(np.isfinite(batch["positions"]).all(axis=1))
    return _any(~finite, batch["atom_offset"])


def _no_gap(batch: Batch) -> np.ndarray:
    return _converged(batch) & _has_lumo(batch) & ~(batch["lumo"] - batch["homo"] > 0)


def _odd(batch: Batch) -> np.ndarray:
    n = electrons(batch)
    return (n % 2 != 0) | (n <= 0)


def _contradiction(batch: Batch) -> np.ndarray:
    return _converged(batch) != batch["converged"]


def _wrong_orbitals(batch: Batch) -> np.ndarray:
    """Orbital energies of a converged row: one for each orbital, ascending, with HOMO and LUMO."""
    offsets, values = batch["orbital_offset"], batch["mo_energy"]
    count = np.diff(offsets)
    descending = np.zeros(len(values), dtype=bool)
    descending[1:] = np.diff(values) < 0
    descending[offsets[:-1][count > 0]] = False  # the first orbital of a row follows no other
    bad = (count != batch["n_ao"]) | _any(descending, offsets)
    occupied = np.clip(electrons(batch) // 2, 1, None)
    for place, name in ((occupied - 1, "homo"), (occupied, "lumo")):
        there = place < count
        at = np.where(there, offsets[:-1] + place, 0)
        if len(values):
            off = np.abs(values[at] - batch[name]) > ORBITAL_TOLERANCE_HARTREE
            bad |= there & off
    return _converged(batch) & bad


def _wrong_charges(batch: Batch) -> np.ndarray:
    """Mulliken charges of a converged row that do not add up to the molecule's."""
    charges = np.nan_to_num(batch["mulliken_charges"])
    off = np.abs(_sums(charges, batch["atom_offset"]) - batch["charge"])
    return _converged(batch) & (off > CHARGE_TOLERANCE_E)


ROW_CHECKS: dict[str, Callable[[Batch], np.ndarray]] = {
    "not_finite": _not_finite,
    "positions_not_finite": _bad_positions,
    "gap_not_positive": _no_gap,
    "odd_electron_count": _odd,
    "status_contradicts_converged": _contradiction,
    "orbital_energies_inconsistent": _wrong_orbitals,
    "charges_do_not_add_up": _wrong_charges,
}
"""[R] mask of the rows that break each invariant."""

FILE_CHECKS = (
    *("missing_shard", "counts", "units", "offsets", "foreign_shard"),
    *("duplicate_row", "duplicate_geometry"),
)


def _file_problems(path: Path, batch: Batch, fingerprint: str) -> dict[str, list[str]]:
    problems: dict[str, list[str]] = {"units": [], "offsets": [], "foreign_shard": []}
    with h5py.File(path, "r") as file:
        for group, fields in (("rows", FIELDS), ("dropped", DROP_FIELDS)):
            for f in fields:
                data: Any = file[f"{group}/{f.name}"]
                if data.attrs.get("units") != f.unit:
                    problems["units"].append(f"{group}/{f.name} is not in {f.unit}")
    for kind in ("atom", "orbital"):
        values = [f.name for f in FIELDS if f.ragged == kind]
        offsets = batch[f"{kind}_offset"]
        right = (
            len(offsets) == len(batch) + 1
            and offsets[0] == 0
            and all(offsets[-1] == len(batch[name]) for name in values)
            and bool(np.all(np.diff(offsets) >= 0))
        )
        if not right:
            problems["offsets"].append(f"{kind}_offset does not divide {values[0]}")
    found = store.read_attributes(path).get("fingerprint")
    if found != fingerprint:
        problems["foreign_shard"].append(f"fingerprint {found}, the run's is {fingerprint}")
    return problems


def _same(ordered: np.ndarray) -> np.ndarray:
    """[R-1] Whether each value but the first equals the one before it."""
    return ordered[1:] == ordered[:-1]


def _any(flags: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """[R] Whether any of a row's ragged values is flagged."""
    return _sums(flags, offsets) > 0


def _sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """[R] Sum of each row's ragged values."""
    total = np.concatenate([[0], np.cumsum(values)])
    return total[offsets[1:]] - total[offsets[:-1]]


def _place(batch: Batch, row: int) -> str:
    return f"line {batch['line'][row]}, conformer {batch['conformer'][row]}"
