"""Molecules in memory, each with one number to learn, perhaps with the forces on its atoms: flat
arrays, whatever file they come from.

Shape legend: R rows (molecules, or conformers of them), `atoms` all their atoms in sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int, Int64, Shaped, UInt8

from qm1b.rows.batch import gather, offsets_of

_TEXTS = ("key", "reason", "id", "doubt")
"""Fields of a `Sample` whose plurals are columns of `Samples`."""


class Sample(NamedTuple):
    """One row; A atoms."""

    numbers: UInt8[np.ndarray, " A"]
    positions_bohr: Float32[np.ndarray, "A 3"]
    target: float
    """In the target's atomic unit; NaN if the file has none."""
    smiles: str
    key: str
    reason: str = ""
    """Why the row cannot be predicted; it may then be without atoms."""
    forces: Float32[np.ndarray, "A 3"] | None = None
    """In hartree/bohr; None if the target has none."""
    id: str = ""
    """Its name in the file; '' if it has none."""
    doubt: str = ""
    """What is to be said of its prediction."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows as columns. Row r has the atoms from `atom_offset[r]` up to `atom_offset[r + 1]`."""

    numbers: UInt8[np.ndarray, " atoms"]
    """Atomic numbers."""
    positions_bohr: Float32[np.ndarray, "atoms 3"]
    atom_offset: Int64[np.ndarray, " ends"]
    """[R + 1]"""
    targets: Float64[np.ndarray, " R"]
    """In the target's atomic unit (hartree, e*bohr); NaN where only a prediction is wanted."""
    smiles: Shaped[np.ndarray, " R"]
    """Text as in the file; '' where it has none."""
    keys: Shaped[np.ndarray, " R"]
    """Where each row is in its file: line and conformer, frame, or row."""
    molecules: Shaped[np.ndarray, " R"]
    """Text that is the same for all conformers of a molecule; splits go by it."""
    reasons: Shaped[np.ndarray, " R"]
    """Why a row cannot be predicted; '' if it can, and in all rows of data to train on."""
    ids: Shaped[np.ndarray, " R"]
    doubts: Shaped[np.ndarray, " R"]
    """Both as in `Sample`."""
    forces: Float32[np.ndarray, "atoms 3"] | None = None
    """On every atom, in hartree/bohr; None if the target has none."""

    def __post_init__(self) -> None:
        rows, atoms = len(self.atom_offset) - 1, len(self.numbers)
        if rows != len(self.targets) or self.atom_offset[-1] != atoms:
            raise ValueError(
                f"offsets of {rows} rows and {self.atom_offset[-1:]} atoms "
                f"for {len(self.targets)} rows and {atoms} atoms"
            )

    @classmethod
    def of(cls, rows: Sequence[Sample], molecules: Sequence[str] | None = None) -> Samples:
        """Single rows as columns; `molecules` are their SMILES unless given."""
        smiles = texts(row.smiles for row in rows)
        return cls(
            np.concatenate([np.zeros(0, np.uint8), *(row.numbers for row in rows)]),
            np.concatenate([np.zeros((0, 3), np.float32), *(row.positions_bohr for row in rows)]),
            offsets_of([len(row.numbers) for row in rows]),
            targets=np.array([row.target for row in rows], np.float64),
            smiles=smiles,
            molecules=smiles if molecules is None else texts(molecules),
            **{f"{one}s": texts(getattr(row, one) for row in rows) for one in _TEXTS},
            forces=_joined([row.forces for row in rows]),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Samples]) -> Samples:
        """The rows of all parts; without parts, no rows."""
        if len(parts) == 1:
            return parts[0]
        all_parts = (cls.of([]), *parts)
        columns = {
            f.name: np.concatenate([getattr(part, f.name) for part in all_parts])
            for f in fields(cls)
            if f.name != "forces"
        }
        sizes = np.concatenate([part.sizes for part in all_parts])
        forces = _joined([part.forces for part in parts if len(part)])
        return cls(**columns | {"atom_offset": offsets_of(sizes), "forces": forces})

    def __len__(self) -> int:
        """Number of rows, R."""
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
            self.numbers[atoms],
            self.positions_bohr[atoms],
            target,
            smiles=self.smiles[at],
            **{one: getattr(self, f"{one}s")[at] for one in _TEXTS},
            forces=None if self.forces is None else self.forces[atoms],
        )

    def __iter__(self) -> Iterator[Sample]:
        """The rows one after another."""
        return map(self.__getitem__, range(len(self)))

    def take(self, rows: Int[np.ndarray, " _"]) -> Samples:
        """The rows of these numbers, in this order."""
        index, offset = gather(self.atom_offset[rows], self.atom_offset[rows + 1])
        by_row = ("targets", "smiles", "molecules", *(f"{one}s" for one in _TEXTS))
        return Samples(
            self.numbers[index],
            self.positions_bohr[index],
            offset,
            **{name: getattr(self, name)[rows] for name in by_row},
            forces=None if self.forces is None else self.forces[index],
        )


def _joined(
    parts: Sequence[Float32[np.ndarray, "_ 3"] | None],
) -> Float32[np.ndarray, "_ 3"] | None:
    """The forces of all parts; None if there are no parts, or a part has none."""
    given = [part for part in parts if part is not None]
    return np.concatenate(given) if given and len(given) == len(parts) else None


def of_charge(charge: int) -> str:
    """The doubt about an ion."""
    return f"has charge {charge:+d}, which the network does not know of" if charge else ""


def without_atoms(smiles: str, key: str, reason: str, name: str = "") -> Sample:
    """A row of which nothing can be predicted, and why, in one line of text."""
    none, nowhere = np.zeros(0, np.uint8), np.zeros((0, 3), np.float32)
    why = " ".join(reason.split())
    return Sample(none, nowhere, float("nan"), smiles=smiles, key=key, reason=why, id=name)


def texts(values: Iterable[str]) -> Shaped[np.ndarray, " _"]:
    """[R] Text as an array of Python strings, so that rows can be taken from it."""
    items = list(values)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array
