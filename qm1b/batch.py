"""Rows in memory, as columns: what every reader gives and every writer takes.

The columns are the fields of `schema.FIELDS` by name, in atomic units. A file of another origin may
lack some. Shape legend: R rows, A atoms of a row, N orbital energies of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .schema import FIELDS, Field, Row

BY_NAME: Mapping[str, Field] = {f.name: f for f in FIELDS}
OFFSETS = frozenset(f"{f.ragged}_offset" for f in FIELDS if f.ragged)


Record = dict[str, Any]
"""One row: numbers, text, and arrays for ragged fields ([A], [A, 3], [N]) and vectors ([3])."""


@dataclass(frozen=True)
class Batch:
    """Rows as columns. Ragged fields are flat: those of row r lie between `<kind>_offset[r]` and
    `<kind>_offset[r + 1]`, as in a shard."""

    columns: dict[str, np.ndarray]
    n_rows: int | None = None
    """Number of rows where it is known without the columns: there may be none."""

    def __len__(self) -> int:
        """Number of rows."""
        if self.n_rows is not None:
            return self.n_rows
        plain = (n for n in self.columns if n not in OFFSETS and not BY_NAME[n].ragged)
        name = next(plain, None)
        if name is not None:
            return len(self.columns[name])
        offset = next((n for n in self.columns if n in OFFSETS), None)
        return len(self.columns[offset]) - 1 if offset else 0

    def __getitem__(self, name: str) -> np.ndarray:
        """A column; raises KeyError if the file has none of that name."""
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        """Whether the file has a field."""
        return name in self.columns

    @property
    def fields(self) -> list[Field]:
        """The fields of a row, offsets left out, in the order of the schema."""
        return [f for f in FIELDS if f.name in self.columns and f.name not in OFFSETS]

    def row(self, index: int) -> Record:
        """One row by itself; `index` from 0."""
        found: Record = {}
        for f in self.fields:
            values = self.columns[f.name]
            if f.ragged:
                start, stop = self.columns[f"{f.ragged}_offset"][index : index + 2]
                found[f.name] = values[start:stop]
            elif f.width > 1:
                found[f.name] = values[index]
            else:
                found[f.name] = values[index].item() if f.dtype != "str" else str(values[index])
        return found

    def rows(self) -> Iterator[Record]:
        """The rows one after another."""
        return map(self.row, range(len(self)))

    def take(self, rows: np.ndarray) -> Batch:
        """The rows of these numbers, in this order."""
        taken: dict[str, np.ndarray] = {}
        for kind in {f.ragged for f in self.fields if f.ragged}:
            offsets = self.columns[f"{kind}_offset"]
            index, taken[f"{kind}_offset"] = gather(offsets[rows], offsets[rows + 1])
            for f in self.fields:
                if f.ragged == kind:
                    taken[f.name] = self.columns[f.name][index]
        for f in self.fields:
            if not f.ragged:
                taken[f.name] = self.columns[f.name][rows]
        return Batch({f.name: taken[f.name] for f in FIELDS if f.name in taken}, len(rows))

    def only(self, names: Iterable[str]) -> Batch:
        """Only these fields, with the offsets that they need."""
        wanted = set(names)
        wanted |= {f"{f.ragged}_offset" for f in self.fields if f.ragged and f.name in wanted}
        columns = {name: values for name, values in self.columns.items() if name in wanted}
        return Batch(columns, len(self))


def unit_name(field: Field) -> str:
    """The name of a field with its unit, as files of other formats have it."""
    return (
        field.name
        if field.unit in ("1", "text")
        else f"{field.name}_{field.unit}".replace("*", "_")
    )


def offsets_of(lengths: Any) -> np.ndarray:
    """[R + 1] Where the values of ragged rows of these lengths begin, one row after another."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def gather(starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the values of ragged rows lie, one row after another, and their new offsets [R + 1]."""
    lengths = stops - starts
    offsets = offsets_of(lengths)
    index = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return index, offsets


def concatenate(batches: Sequence[Batch]) -> Batch:
    """Several batches with the same fields as one."""
    joined: dict[str, np.ndarray] = {}
    for name in batches[0].columns:
        parts = [batch[name] for batch in batches]
        if name in OFFSETS:
            shift = np.cumsum([0, *(part[-1] for part in parts)])
            moved = [part[1:] + by for part, by in zip(parts, shift, strict=False)]
            joined[name] = np.concatenate([[0], *moved]).astype(np.int64)
        else:
            joined[name] = np.concatenate(parts)
    return Batch(joined, sum(map(len, batches)))


def column(field: Field, values: Any, rows: int) -> np.ndarray:
    """Values as the column of a field: its dtype, [rows], [rows, width] or flat if ragged."""
    if field.dtype == "str":
        return np.array(values, dtype=object).reshape(rows)
    array = np.asarray(values, dtype=field.dtype)
    first = -1 if field.ragged else rows
    return array.reshape((first, field.width) if field.width > 1 else (first,))


def missing(batch: Batch) -> list[str]:
    """The fields that a batch lacks to be whole."""
    return [name for name in BY_NAME if name not in batch]


def columns_of(rows: Sequence[Row]) -> dict[str, Any]:
    """What a run has computed as columns, whole: lists and arrays by field."""
    columns: dict[str, Any] = {}
    for f in FIELDS:
        if f.ragged or f.name.endswith("_offset"):
            continue
        source = "conformer" if rows and hasattr(rows[0].conformer, f.name) else "result"
        columns[f.name] = [getattr(getattr(row, source), f.name) for row in rows]
    ragged: dict[str, list[Any]] = {
        "numbers": [row.conformer.numbers for row in rows],
        "positions": [row.conformer.positions for row in rows],
        "mulliken_charges": [_charges(row) for row in rows],
        "mo_energy": [row.result.mo_energy for row in rows],
    }
    columns |= {name: np.concatenate(values) if rows else [] for name, values in ragged.items()}
    columns["atom_offset"] = offsets_of([len(values) for values in ragged["numbers"]])
    columns["orbital_offset"] = offsets_of([len(values) for values in ragged["mo_energy"]])
    return columns


def _charges(row: Row) -> Sequence[float]:
    """One for each atom, whatever became of the calculation."""
    return row.result.mulliken_charges or [float("nan")] * len(row.conformer.numbers)
