"""Invariants: what must hold for every row of a dataset, at any level of theory."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from pyscf_ipu.elements.basis_sets import core_electrons
from qm1b.audit.properties import CHARGE_TOLERANCE_E, wrong_properties
from qm1b.folder import shards
from qm1b.folder.completeness import ranges
from qm1b.folder.manifest.manifest import Manifest
from qm1b.folder.manifest.manifest_schema import RUNNING
from qm1b.reference import atomisation
from qm1b.rows.batch import Batch
from qm1b.rows.schema import CONVERGED, DROP_FIELDS, FIELDS

EXAMPLES = 5
MOST_LEFT_OUT = 0.1  # of the AOs: orbitals that a row may lack
ORBITAL_TOLERANCE_HARTREE = 1e-6
NET_FORCE_HARTREE_PER_BOHR = 1e-3
LAST_CYCLES = 5  # of which energy_std is
OCCUPIED = "n_occupied"


@dataclass
class Violation:
    """The rows or files that break an invariant."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, count: int, examples: list[str]) -> None:
        """Add `count` violations; the first EXAMPLES examples are kept."""
        self.count += count
        self.examples += examples[: EXAMPLES - len(self.examples)]


@dataclass
class Invariants:
    """Checks of all rows, shard by shard. Keeps 20 bytes per row to find duplicates."""

    fingerprint: str
    free_atoms: Mapping[str, float] = field(default_factory=dict)
    """Energies in Hartree by symbol."""
    basis: str = ""
    """The run's basis set, whose core potentials replace electrons; without one none does."""
    violations: dict[str, Violation] = field(
        default_factory=lambda: {name: Violation() for name in (*ROW_CHECKS, *FILE_CHECKS)}
    )
    """Every invariant, broken or not."""
    rows: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    """Rows by the hash of the code that computed them (`qm1b.folder.manifest.sources`)."""
    units: set[int] = field(default_factory=set)
    statuses: Counter[str] = field(default_factory=Counter)
    drops: Counter[str] = field(default_factory=Counter)
    coinciding: int = 0
    """Conformers with the same geometry as another conformer of their line, which is allowed."""
    _seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)

    def add(self, path: Path, batch: Batch) -> bool:
        """Check a shard; returns False if its offsets do not divide it into rows."""
        self.rows += len(batch)
        self.units.add(shards.unit_of(path))
        self.statuses.update(text.split(":")[0] for text in batch["status"])
        self.drops.update(drop.reason for drop in shards.read_drops(path))
        attributes = shards.read_attributes(path)
        code = json.loads(attributes.get("versions", "{}")).get("sources", "not recorded")
        self.sources[code] += len(batch)
        problems = _file_problems(path, batch)
        if (theirs := attributes.get("fingerprint")) != self.fingerprint:
            foreign = f"fingerprint {theirs}, the run's is {self.fingerprint}"
            problems["foreign_shard"].append(foreign)
        for name, values in problems.items():
            self.violations[name].add(len(values), [f"{path.name}: {p}" for p in values])
        if problems["offsets"]:
            return False
        batch = with_occupied(batch, self.basis)
        masks = {name: check(batch) for name, check in ROW_CHECKS.items()}
        masks["atomisation_energy"] = atomisation.wrong(batch, self.free_atoms)
        for name, mask in masks.items():
            bad = np.flatnonzero(mask)
            self.violations[name].add(len(bad), [_place(batch, i) for i in bad[:EXAMPLES].tolist()])
        self._seen.append((batch["line"], batch["conformer"], geometry_hashes(batch)))
        return True

    def compare(self, manifest: Manifest) -> None:
        """Compare the counts of the added shards (all of a folder) with those in its manifest."""
        missing = manifest.missing(self.units)
        where = [f"units {ranges(missing.units)}, the run is {manifest.status}"]
        self.violations["missing_shard"].add(missing.count, where if missing.count else [])
        if manifest.status == RUNNING:  # or killed: the manifest was not updated
            return
        counts = manifest.counts.to_dict()
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
            # Relaxation may lead conformers of a line to one minimum, and an atom has one geometry.
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


def _multiplicity(batch: Batch) -> np.ndarray:
    """[R] 2S + 1; 1 in a run without open shells."""
    return batch.columns.get("multiplicity", np.ones(len(batch), np.int8)).astype(np.int64)


def with_occupied(batch: Batch, basis: str) -> Batch:
    """The rows with a column more, OCCUPIED [R, 2]: the orbitals that alpha and beta fill.

    Args:
        batch: the rows.
        basis: whose core potentials replace electrons; "" if none does.
    """
    kinds, place = np.unique(batch["numbers"], return_inverse=True)
    cores = np.array([core_electrons(basis, z) if basis else 0 for z in kinds.tolist()], np.int64)
    valence = electrons(batch) - _sums(cores[place], batch["atom_offset"])
    unpaired = _multiplicity(batch) - 1
    occupied = np.stack([valence + unpaired, valence - unpaired], axis=1) // 2
    return Batch(batch.columns | {OCCUPIED: occupied}, len(batch))


def geometry_hashes(batch: Batch) -> np.ndarray:
    """[R] 64 bits of each row's elements, positions, charge and multiplicity."""
    offsets, numbers, positions = batch["atom_offset"], batch["numbers"], batch["positions"]
    digests = []
    states = batch["charge"].tolist(), _multiplicity(batch).tolist()
    for a, b, charge, spin in zip(offsets, offsets[1:], *states, strict=False):
        text = numbers[a:b].tobytes() + positions[a:b].tobytes() + bytes([charge % 256])
        text += bytes([spin % 256]) * (spin > 1)
        digests.append(hashlib.blake2b(text, digest_size=8).digest())
    return np.frombuffer(b"".join(digests), dtype="<u8")


def _converged(batch: Batch) -> np.ndarray:
    return batch["status"] == CONVERGED


def _has_lumo(batch: Batch) -> np.ndarray:
    return batch[OCCUPIED][:, 1] < batch["n_ao"]


def _not_finite(batch: Batch) -> np.ndarray:
    """Converged rows with NaN or inf; a missing LUMO is fine if all orbitals are occupied."""
    names = ("energy", "homo", "energy_std", "commutator_norm")
    bad = ~np.stack([np.isfinite(batch[name]) for name in names]).all(axis=0)
    if "dispersion" in batch:
        bad |= ~np.isfinite(batch["dispersion"])
    bad |= ~np.isfinite(batch["dipole"]).all(axis=1)
    bad |= _any(~np.isfinite(batch["mulliken_charges"]), batch["atom_offset"])
    bad |= _lacks_forces(batch)
    bad |= _has_lumo(batch) & ~np.isfinite(batch["lumo"])
    bad |= _any(~np.isfinite(batch["mo_energy"]), batch["orbital_offset"])
    return _converged(batch) & bad


def _wrong_orbitals(batch: Batch) -> np.ndarray:
    """Converged rows unless there is one energy per orbital, ascending, with HOMO and LUMO.

    In float64 nearly dependent AOs are left out, as in PySCF: there are fewer orbitals then.
    Unrestricted rows have those of alpha, then as many of beta.
    """
    offsets, values = batch["orbital_offset"], batch["mo_energy"]
    spins = np.where(np.diff(offsets) > batch["n_ao"], 2, 1)
    count, uneven = np.divmod(np.diff(offsets), spins)
    beta = offsets[:-1] + (spins - 1) * count
    descending = np.zeros(len(values), dtype=bool)
    descending[1:] = np.diff(values) < 0
    for first in (offsets[:-1], beta):  # they have no predecessor
        descending[first[count > 0]] = False
    left_out = batch["n_ao"] - count
    bad = (left_out < 0) | (left_out > MOST_LEFT_OUT * batch["n_ao"]) | _any(descending, offsets)
    bad |= uneven > 0
    if len(values):
        homo, lumo = _frontier(
            values, np.stack([offsets[:-1], beta], 1), count, occupied=batch[OCCUPIED]
        )
        for name, level in (("homo", homo), ("lumo", lumo)):
            near = np.abs(level - batch[name]) <= ORBITAL_TOLERANCE_HARTREE
            bad |= np.isfinite(level) & ~near
    return _converged(batch) & bad


def _frontier(
    values: np.ndarray, first: np.ndarray, count: np.ndarray, occupied: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """[R] Highest occupied and lowest empty level of both spins; infinite without one.

    Args:
        values: all levels, one row after another.
        first: [R, 2] the place of the first of each spin.
        count: [R] levels of each spin.
        occupied: [R, 2] how many of them are.
    """
    has_homo, has_lumo = (occupied > 0) & (occupied <= count[:, None]), occupied < count[:, None]
    homo = np.where(has_homo, values[np.where(has_homo, first + occupied - 1, 0)], -np.inf)
    lumo = np.where(has_lumo, values[np.where(has_lumo, first + occupied, 0)], np.inf)
    return homo.max(axis=1), lumo.min(axis=1)


def _wrong_charges(batch: Batch) -> np.ndarray:
    """Converged rows whose Mulliken charges do not add up to the molecule's charge."""
    charges = np.nan_to_num(batch["mulliken_charges"])
    off = np.abs(_sums(charges, batch["atom_offset"]) - batch["charge"])
    return _converged(batch) & (off > CHARGE_TOLERANCE_E)


def _no_gap(batch: Batch) -> np.ndarray:
    """Converged closed shells whose HOMO is not below the LUMO; those of two spins may cross."""
    is_closed = batch.columns.get("s_squared", np.zeros(len(batch))) == 0
    gap = batch["lumo"] - batch["homo"]
    return _converged(batch) & is_closed & _has_lumo(batch) & ~(gap > 0)


def _wrong_spins(batch: Batch) -> np.ndarray:
    """Converged rows whose spin populations do not add up, or whose <S^2> is below S (S + 1)."""
    if "spin_populations" not in batch:
        return np.zeros(len(batch), bool)
    unpaired = _multiplicity(batch) - 1
    sums = _sums(np.nan_to_num(batch["spin_populations"]), batch["atom_offset"])
    bad = ~(np.abs(sums - unpaired) <= CHARGE_TOLERANCE_E)
    below = unpaired / 2 * (unpaired / 2 + 1) - batch["s_squared"]
    return _converged(batch) & (bad | ~(below <= CHARGE_TOLERANCE_E))


def _lacks_forces(batch: Batch) -> np.ndarray:
    """Rows without a finite force on every atom, in a run with forces."""
    if "forces" not in batch:
        return np.zeros(len(batch), bool)
    return _any(np.any(~np.isfinite(batch["forces"]), axis=1), batch["atom_offset"])


def _net_force(batch: Batch) -> np.ndarray:
    """Converged rows whose forces do not add up to zero."""
    forces = np.nan_to_num(batch.columns.get("forces", np.zeros((len(batch["numbers"]), 3))))
    net = np.abs([_sums(one, batch["atom_offset"]) for one in forces.T]).max(axis=0)
    return _converged(batch) & ~_lacks_forces(batch) & (net > NET_FORCE_HARTREE_PER_BOHR)


def _wrong_cycles(batch: Batch) -> np.ndarray:
    """Rows with a record of other cycles than they had; rows without one are allowed.

    The record has the cycles of all starts, one after another; `energy_std` is that of the start
    that counts, which need not be the last.
    """
    if "cycle_energy" not in batch:
        return np.zeros(len(batch), bool)
    offsets, energies = batch["cycle_offset"], batch["cycle_energy"]
    kept = np.diff(offsets)
    bad = (kept > 0) & (kept != batch["cycles"])
    off = np.zeros(len(batch), bool)
    for row in np.flatnonzero(kept):
        of_row = energies[offsets[row] : offsets[row + 1]]
        apart = np.abs(_spreads(of_row) - batch["energy_std"][row])
        off[row] = not (apart <= ORBITAL_TOLERANCE_HARTREE).any()
    return bad | (_converged(batch) & off)


def _spreads(energies: np.ndarray) -> np.ndarray:
    """Standard deviations of the last five cycles, had the SCF ended in any of them.

    Fewer than five if a start had no more: so all runs of two to five cycles count.
    None of a record that has something else than numbers.
    """
    if not np.isfinite(energies).all():
        return np.zeros(0)
    widths = range(min(2, len(energies)), min(LAST_CYCLES, len(energies)) + 1)
    return np.concatenate([np.std(sliding_window_view(energies, n), axis=1) for n in widths])


ROW_CHECKS: dict[str, Callable[[Batch], np.ndarray]] = {
    "not_finite": _not_finite,
    "positions_not_finite": lambda b: _any(
        np.any(~np.isfinite(b["positions"]), axis=1), b["atom_offset"]
    ),
    "gap_not_positive": _no_gap,
    "odd_electron_count": lambda b: (
        ((electrons(b) - _multiplicity(b)) % 2 == 0)
        | (electrons(b) < _multiplicity(b) - 1)
        | (electrons(b) <= 0)
    ),
    "spins_inconsistent": _wrong_spins,
    "status_contradicts_converged": lambda b: _converged(b) != b["converged"],
    "orbital_energies_inconsistent": _wrong_orbitals,
    "charges_do_not_add_up": _wrong_charges,
    "properties_inconsistent": wrong_properties,
    "forces_do_not_add_up": _net_force,
    "cycles_inconsistent": _wrong_cycles,
    "atom_of_input_twice": lambda b: _repeated(b["input_atom"], b["atom_offset"]),
    "forces_without_convergence": lambda b: ("forces" in b) & ~_converged(b) & ~_lacks_forces(b),
}
"""Functions of rows `with_occupied`: a mask [R] of the rows that break each invariant."""

FILE_CHECKS = (
    *("missing_shard", "counts", "units", "offsets", "foreign_shard"),
    *("duplicate_row", "duplicate_geometry", "atomisation_energy", "free_atoms"),
)


def _file_problems(path: Path, batch: Batch) -> dict[str, list[str]]:
    problems: dict[str, list[str]] = {"units": [], "offsets": [], "foreign_shard": []}
    with shards.opened(path, checked=True) as file:
        for group, fields in (("rows", FIELDS), ("dropped", DROP_FIELDS)):
            for f in fields:
                name = f"{group}/{f.name}"  # an earlier version, or another run, may lack it
                if name in file and file[name].attrs.get("units") != f.unit:
                    problems["units"].append(f"{name} is not in {f.unit}")
    later = [kind for kind in ("pair", "cycle") if f"{kind}_offset" in batch]
    for kind in ("atom", "orbital", *later):
        values = [f.name for f in FIELDS if f.ragged == kind and f.name in batch]
        offsets = batch[f"{kind}_offset"]
        right = (
            len(offsets) == len(batch) + 1
            and offsets[0] == 0
            and all(offsets[-1] == len(batch[name]) for name in values)
            and bool(np.all(np.diff(offsets) >= 0))
        )
        if not right:
            problems["offsets"].append(f"{kind}_offset does not divide {values[0]}")
    return problems


def _repeated(places: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """[R] Whether two atoms of a row are said to be the same atom of the input."""
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[places >= 0]
    order = np.lexsort((places[places >= 0], row))
    again = _same(places[places >= 0][order]) & _same(row[order])
    return np.bincount(row[order][1:][again], minlength=len(offsets) - 1) > 0


def _same(ordered: np.ndarray) -> np.ndarray:
    """[R-1] Whether each value, from the second on, equals the one before it."""
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
