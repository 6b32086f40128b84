"""Rows in memory, as columns: the form that every reader returns and every writer takes.

The columns are the fields of `schema.FIELDS` by name, in atomic units. A file of another origin may
lack some. Shape legend: R rows, A atoms of a row, N orbital energies of a row, K cycles of a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from qm1b.rows.schema import FIELDS, Conformer, Field, Json, Row, fields_of, stored_fields

BY_NAME: Mapping[str, Field] = {f.name: f for f in FIELDS}
OFFSETS = frozenset(f"{f.ragged}_offset" for f in FIELDS if f.ragged)

Record = dict[str, Any]
"""One row: numbers, text, and arrays: ragged fields ([A], [A, 3], [N], [K]) and vectors ([3])."""

Of = TypeVar("Of")
"""What rows are made of."""


@dataclass(frozen=True)
class Batch:
    """Rows as columns.

    Ragged fields are flat, as in a shard: the values of row r are between `<kind>_offset[r]` and
    `<kind>_offset[r + 1]`.
    """

    columns: dict[str, np.ndarray]
    n_rows: int | None = None
    """Number of rows where it is known without the columns, of which there may be none."""

    def __len__(self) -> int:
        """Number of rows."""
        if self.n_rows is not None:
            return self.n_rows
        plain = [len(self.columns[f.name]) for f in self.fields if not f.ragged]
        return next(iter([*plain, *(len(self.columns[n]) - 1 for n in OFFSETS if n in self)]), 0)

    def __getitem__(self, name: str) -> np.ndarray:
        """The column of a field; raises KeyError if the file has none of that name."""
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        """Whether the file has a field."""
        return name in self.columns

    @property
    def fields(self) -> list[Field]:
        """The fields of a row, without offsets, in the order of the schema."""
        return [f for f in FIELDS if f.name in self.columns and f.name not in OFFSETS]

    @property
    def is_consistent(self) -> bool:
        """Whether columns have a value per row, or those of atoms and the like one per entry."""
        lengths: dict[str, int] = {"": len(self)}
        for name in OFFSETS:
            if name in self:
                ends = self[name]
                if len(ends) != len(self) + 1 or ends[0] or (np.diff(ends) < 0).any():
                    return False
                lengths[name.removesuffix("_offset")] = int(ends[-1])
        return all(len(self[f.name]) == lengths.get(f.ragged) for f in self.fields)

    def row(self, index: int) -> Record:
        """One row; `index` counts from 0."""
        record: Record = {}
        for f in self.fields:
            values = self.columns[f.name]
            if f.ragged:
                start, stop = self.columns[f"{f.ragged}_offset"][index : index + 2]
                by_pair = (math.isqrt(stop - start), -1) if f.ragged == "pair" else (-1, *f.shape)
                record[f.name] = values[start:stop].reshape(by_pair)
            elif f.width > 1:
                record[f.name] = values[index]
            else:
                record[f.name] = values[index].item() if f.dtype != "str" else str(values[index])
        return record

    def rows(self) -> Iterator[Record]:
        """The rows one after another."""
        return map(self.row, range(len(self)))

    def take(self, rows: np.ndarray) -> Batch:
        """The rows with these numbers, in this order."""
        taken: dict[str, np.ndarray] = {}
        index = {"": rows}
        for kind in {f.ragged for f in self.fields if f.ragged}:
            offsets = self.columns[f"{kind}_offset"]
            index[kind], taken[f"{kind}_offset"] = gather(offsets[rows], offsets[rows + 1])
        taken |= {f.name: self.columns[f.name][index[f.ragged]] for f in self.fields}
        return Batch(in_order(taken), len(rows))

    def only(self, names: Iterable[str]) -> Batch:
        """Only these fields, with the offsets that they need."""
        wanted = set(names)
        wanted |= {f"{f.ragged}_offset" for f in self.fields if f.ragged and f.name in wanted}
        columns = {name: values for name, values in self.columns.items() if name in wanted}
        return Batch(columns, len(self))


def in_order(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns in the order of the schema."""
    return {name: columns[name] for name in BY_NAME if name in columns}


def unit_name(field: Field) -> str:
    """The name of a field with its unit, as files of other formats have it."""
    if field.unit in ("1", "text"):
        return field.name
    return f"{field.name}_{field.unit}".replace("*", "_").replace("/", "_").replace("^", "")


def offsets_of(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """[R + 1] Where the values of ragged rows of these lengths begin, one row after another."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def gather(starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the values of ragged rows, row after row, and their new offsets [R + 1]."""
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
            joined[name] = offsets_of(np.concatenate([np.diff(part) for part in parts]))
        else:
            joined[name] = np.concatenate(parts)
    return Batch(joined, sum(map(len, batches)))


def column(field: Field, values: Sequence[object] | np.ndarray, rows: int) -> np.ndarray:
    """Values as the column of a field: its dtype, [rows, *its shape], or flat if ragged."""
    if field.dtype == "str":
        return np.array(values, dtype=object).reshape(rows)
    array = np.asarray(values, dtype=field.dtype)
    return array.reshape((-1 if field.ragged else rows, *field.shape))


def completed(batch: Batch, settings: Json) -> Batch:
    """The rows of a run with the fields that an earlier version did not have, if it wrote them."""
    columns = dict(batch.columns)
    for field in (BY_NAME[name] for name in missing(batch, settings)):
        if field.earlier is not None:
            count = len(batch["numbers"]) if field.ragged == "atom" else len(batch)
            dtype = object if field.dtype == "str" else field.dtype
            columns[field.name] = np.full((count, *field.shape), field.earlier, dtype)
    return _balanced(Batch(in_order(columns), len(batch)))


def _balanced(batch: Batch) -> Batch:
    """The rows with net force and torque, which follow from their forces, where they lack them."""
    if "net_force" not in batch:
        return batch
    lacking = np.isnan(batch["net_force"]).any(axis=1, keepdims=True)
    first = batch["forces"][batch["atom_offset"][:-1]]  # not finite in rows that did not converge
    if not (lacking & np.isfinite(first).all(axis=1, keepdims=True)).any():
        return batch
    values = {name: np.where(lacking, v, batch[name]) for name, v in balance(batch).items()}
    return Batch(batch.columns | values, len(batch))


def balance(batch: Batch) -> dict[str, np.ndarray]:
    """[R, 3] Net force and torque, which is about the mean position of each row's atoms."""
    sums = {name: np.full((len(batch), 3), np.nan) for name in ("net_force", "torque")}
    for i, row in enumerate(batch.only(["positions", "forces"]).rows()):
        arms = row["positions"].astype(np.float64)
        sums["net_force"][i] = row["forces"].sum(axis=0)
        sums["torque"][i] = np.cross(arms - arms.mean(axis=0), row["forces"]).sum(axis=0)
    return sums


def missing(batch: Batch, settings: Json) -> list[str]:
    """The fields that the rows of a run have, by its settings, and a batch lacks."""
    return [f.name for f in fields_of(settings) if f.name not in batch]


def conformer_of(record: Record) -> Conformer:
    """The conformer of a row that was read."""
    values = {f.name: record[f.name] for f in stored_fields(Conformer) if f.name in record}
    values |= {"positions": record["positions"].astype(np.float64)}
    values |= {"open_shell": record.get("multiplicity", 1) > 1 or record.get("s_squared", 0.0) > 0}
    values |= {"input_atom": tuple(np.asarray(record.get("input_atom", ())).astype(int).tolist())}
    return Conformer(**values)


def row_of(record: Record) -> Row:
    """A row that was read, in the form in which a run writes it."""
    names = {f.name for f in stored_fields(Row)} & record.keys()
    values: Record = {name: plain(record[name]) for name in names}
    return Row(conformer=conformer_of(record), **values)


def batch_of_rows(rows: Sequence[Row], chosen: Iterable[Field]) -> Batch:
    """The chosen fields of a run's rows."""
    return _balanced(batch_of(rows, chosen, _value))


def batch_of(
    rows: Sequence[Of], chosen: Iterable[Field], value: Callable[[Of, Field], Any]
) -> Batch:
    """The chosen fields of some rows, of which `value` gives those of one."""
    columns: dict[str, np.ndarray] = {}
    for f in chosen:
        if f.name in OFFSETS:
            continue
        values = [value(row, f) for row in rows]
        if f.ragged:
            values = list(map(np.ravel, values)) if f.ragged == "pair" else values
            columns[f"{f.ragged}_offset"] = offsets_of([len(v) for v in values])
            values = np.concatenate(values) if rows else []
        columns[f.name] = column(f, values, len(rows))
    return Batch(in_order(columns))


def _value(row: Row, field: Field) -> Any:
    """A field of a row; if there is nothing for atoms or pairs, NaN or -1 for each of them."""
    value = getattr(row.conformer if hasattr(row.conformer, field.name) else row, field.name)
    if field.ragged in ("atom", "pair") and not len(value):
        atoms = len(row.conformer.numbers)
        nothing = np.nan if field.earlier is None else field.earlier
        return np.full((atoms ** (2 if field.ragged == "pair" else 1), *field.shape), nothing)
    return value


def plain(value: object) -> object:
    """A value without arrays, as a `Row` has it: tuples and numbers of Python."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    return tuple(map(plain, value)) if isinstance(value, list) else value
