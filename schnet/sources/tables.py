"""Folders of `qm1b generate`, and Parquet files of `qm1b export` or of QM1B itself.

qm1b reads them, in atomic units. Left out and counted are rows that did not converge, whose target
is not finite, or that are suspect. QM1B's own files say nothing of convergence but the spread of
the last energies, `std`: rows of 0.01 eV or more are left out, as its authors do
(doi:10.48550/arXiv.2311.01135).
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path

import numpy as np

from pyscf_ipu.units import HARTREE_TO_EV
from qm1b import completeness, molecules
from qm1b.batch import Batch
from qm1b.checksum import BLOCK
from qm1b.formats.columns import FROM_EV
from qm1b.formats.parquet import ParquetFile
from qm1b.reading import Folder, Indexed
from qm1b.schema import CONVERGED

from ..errors import UserError
from ..samples import Samples, texts
from ..targets import Target
from .base import Reasons, Source, digest, kept

STD_LIMIT_EV = 0.01

_WHERE = ("smiles", "line", "conformer", "seed", "numbers", "positions")
_WHETHER = ("status", "converged", "suspect", "energy_std")


class TableSource(Source):
    """A source that qm1b reads. `target` None: all rows, for a prediction."""

    def __init__(self, path: Path, target: Target | None) -> None:
        super().__init__(path)
        self.target = target
        self._fields = [*_WHERE, *(() if target is None else (*_WHETHER, *target.fields))]
        self._data = self._open()

    def _open(self) -> Indexed:
        raise NotImplementedError

    @cached_property
    def sizes(self) -> list[int]:
        """Rows of each shard or row group, as its header says."""
        return self._data.sizes

    @cached_property
    def _starts(self) -> list[int]:
        return np.cumsum([0, *self.sizes]).tolist()

    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """See `Source.read_part`."""
        batch = self._data.part(number)
        needed = {"smiles", "numbers", "positions", *(self.target.fields if self.target else ())}
        missing = sorted(name for name in needed if name not in batch)
        if missing:
            raise UserError(f"{self.path} has no {', '.join(missing)}; {self._wanted()}.")
        if int(batch["atom_offset"][-1]) != len(batch["numbers"]):
            raise UserError(
                f"{self.path} is damaged: part {number} has {len(batch['numbers'])} atomic "
                f"numbers (z) but {len(batch['positions'])} positions (pos)."
            )
        return kept(
            self._samples(batch, self._starts[number]), self._tests(batch), self.target is not None
        )

    def _wanted(self) -> str:
        if self.target is None:
            return "a prediction needs them"
        return f"--target {self.target.name} needs {' and '.join(self.target.fields)}"

    def _samples(self, batch: Batch, start: int) -> Samples:
        rows = len(batch)
        if "line" in batch and "conformer" in batch:
            pairs = zip(batch["line"].tolist(), batch["conformer"].tolist(), strict=True)
            keys = texts([f"line {line} conformer {conformer}" for line, conformer in pairs])
        else:
            keys = texts([f"row {start + i}" for i in range(rows)])
        targets = np.full(rows, np.nan)
        if self.target is not None:
            targets = self.target.of_fields(batch.columns).astype(np.float64)
        return Samples(
            batch["numbers"],
            batch["positions"],
            batch["atom_offset"],
            targets,
            batch["smiles"],
            keys,
            molecules.names(batch),
        )

    def _tests(self, batch: Batch) -> dict[str, np.ndarray]:
        """Which rows pass, by the reason for which the others do not."""
        if self.target is None:
            return {}
        tests: dict[str, np.ndarray] = {}
        if "status" in batch and "converged" in batch:
            tests["not converged"] = (batch["status"] == CONVERGED) & batch["converged"]
        elif "energy_std" in batch:
            # The column is float32, and so is its comparison with the limit.
            spread = (batch["energy_std"] * HARTREE_TO_EV).astype(np.float32)
            tests[f"std of {STD_LIMIT_EV} eV or more"] = spread < np.float32(STD_LIMIT_EV)
        if "suspect" in batch:
            tests["suspect"] = batch["suspect"] == ""
        return tests


class RunSource(TableSource):
    """A folder of `qm1b generate`; its parts are its shards. Its run need not be at its end."""

    def _open(self) -> Indexed:
        self._folder = Folder(self.path, self._fields)
        if not self._folder.shards:
            raise UserError(f"folder {self.path} holds no shards yet; let its qm1b generate run.")
        completeness.notice(self._folder)  # a lost shard ends it here
        return self._folder

    @property
    def units(self) -> dict[str, str]:
        """Hartree and Bohr: qm1b keeps atomic units."""
        names = ("positions", *(self.target.fields if self.target else ()))
        return {name: self._data.units[name] for name in names}

    def fingerprint(self) -> str:
        """Of the manifest's fingerprint and the checksum that each shard begins with: exact."""
        found = hashlib.sha256(self._folder.metadata["fingerprint"].encode())
        for path in self._folder.shards:
            with open(path, "rb") as stream:
                found.update(path.name.encode() + stream.read(BLOCK))
        return found.hexdigest()


class ParquetSource(TableSource):
    """A Parquet file with QM1B's columns; its parts are its row groups."""

    def _open(self) -> Indexed:
        return ParquetFile(self.path, self._fields)

    @property
    def units(self) -> dict[str, str]:
        """Of the columns with QM1B's names: energies in eV."""
        found = {"pos": "bohr"}
        for name in self.target.fields if self.target else ():
            found[FROM_EV.get(name, name)] = "eV" if name in FROM_EV else "e*bohr"
        return found

    def fingerprint(self) -> str:
        """See `digest`; the end of a Parquet file tells where each column chunk lies."""
        return digest(self.path)
