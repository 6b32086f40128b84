"""Molecules in memory with one number each to learn: flat arrays, whatever file they came from.

Shape legend: R rows (molecules, or conformers of them), `atoms` their atoms one row after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int, Int64, Shaped, UInt8

from qm1b.batch import gather, offsets_of


class Sample(NamedTuple):
    """One row; A atoms."""

    numbers: UInt8[np.ndarray, " A"]
    positions_bohr: Float32[np.ndarray, "A 3"]
    target: float
    """In the target's atomic unit; NaN if the file has none."""
    smiles: str
    key: str


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows as columns. The atoms of row r lie between `atom_offset[r]` and `atom_offset[r + 1]`."""

    numbers: UInt8[np.ndarray, " atoms"]
    """Atomic numbers."""
    positions_bohr: Float32[np.ndarray, "atoms 3"]
    atom_offset: Int64[np.ndarray, " ends"]
    """[R + 1]"""
    targets: Float64[np.ndarray, " R"]
    """In the target's atomic unit (hartree, e*bohr); NaN where only a prediction is wanted."""
    smiles: Shaped[np.ndarray, " R"]
    """Text as the file has it, '' if it has none."""
    keys: Shaped[np.ndarray, " R"]
    """Text that says where in its file a row stands: line and conformer, frame, or row."""
    molecules: Shaped[np.ndarray, " R"]
    """Text that all conformers of a molecule share: what a split goes by."""

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        if len(self.atom_offset) != len(self.targets) + 1 or self.atom_offset[-1] != len(
            self.numbers
        ):
            raise ValueError(
                f"offsets of {len(self.atom_offset) - 1} rows and {self.atom_offset[-1:]} atoms "
                f"for {len(self.targets)} rows and {len(self.numbers)} atoms"
            )

    @classmethod
    def of(cls, rows: Sequence[Sample], molecules: Sequence[str] | None = None) -> Samples:
        """Rows given one by one; `molecules` are their SMILES unless said otherwise."""
        lengths = [len(row.numbers) for row in rows]
        smiles = texts(row.smiles for row in rows)
        return cls(
            np.concatenate([np.zeros(0, np.uint8), *(row.numbers for row in rows)]),
            np.concatenate([np.zeros((0, 3), np.float32), *(row.positions_bohr for row in rows)]),
            offsets_of(lengths),
            np.array([row.target for row in rows], np.float64),
            smiles,
            texts(row.key for row in rows),
            smiles if molecules is None else texts(molecules),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Samples]) -> Samples:
        """Several after one another; none gives no rows."""
        empty = cls.of([])
        if len(parts) == 1:
            return parts[0]
        plain = {
            f.name: np.concatenate([getattr(part, f.name) for part in (empty, *parts)])
            for f in fields(cls)
        }
        lengths = [np.diff(part.atom_offset) for part in parts]
        plain["atom_offset"] = np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))
        return cls(**plain)

    def __len__(self) -> int:
        """R."""
        return len(self.targets)

    @property
    def sizes(self) -> Int64[np.ndarray, " R"]:
        """Atoms of each row."""
        return np.diff(self.atom_offset)

    def __getitem__(self, row: int) -> Sample:
        """One row, from 0, or from the end if negative; raises IndexError."""
        target = self.targets[row].item()
        at = range(len(self))[row]
        atoms = slice(*self.atom_offset[at : at + 2].tolist())
        return Sample(
            self.numbers[atoms], self.positions_bohr[atoms], target, self.smiles[at], self.keys[at]
        )

    def __iter__(self) -> Iterator[Sample]:
        """The rows one after another."""
        return map(self.__getitem__, range(len(self)))

    def take(self, rows: Int[np.ndarray, " _"]) -> Samples:
        """The rows of these numbers, in this order."""
        index, offset = gather(self.atom_offset[rows], self.atom_offset[rows + 1])
        return Samples(
            self.numbers[index],
            self.positions_bohr[index],
            offset,
            self.targets[rows],
            self.smiles[rows],
            self.keys[rows],
            self.molecules[rows],
        )


def texts(values: Iterator[str] | Sequence[str] | map[str]) -> Shaped[np.ndarray, " _"]:
    """[R] Text as an array of Python strings, so that rows can be taken from it."""
    found = list(values)
    array = np.empty(len(found), dtype=object)
    array[:] = found
    return array
