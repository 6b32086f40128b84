"""Folders of `qm1b generate`, and Parquet files of `qm1b export` or of QM1B itself.

qm1b reads them, in atomic units. Dropped and counted are rows that did not converge, whose target
or forces are not finite, or that are suspect. QM1B's own files have no convergence flag but the
spread of the last energies, `std`: rows of 0.01 eV or more are dropped, as its authors do
(doi:10.48550/arXiv.2311.01135).
"""

import hashlib
from collections import Counter
from functools import cached_property
from pathlib import Path

import numpy as np

from pyscf_ipu.base.units import HARTREE_TO_EV
from qm1b.folder import completeness
from qm1b.folder.checksum import BLOCK
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats.columns import CONVERTED
from qm1b.formats.parquet import ParquetFile
from qm1b.rows import identity
from qm1b.rows.batch import Batch
from qm1b.rows.dataset import Indexed
from qm1b.rows.schema import CONVERGED
from schnet.errors import UserError
from schnet.samples.samples import Samples, of_charge, texts
from schnet.samples.targets import FORCES, Target
from schnet.sources.base import FITTED, Reasons, Source, kept

STD_LIMIT_EV = 0.01

_POSITION = ("smiles", "line", "conformer", "seed", "numbers", "positions")
_TO_PREDICT = ("id", "charge")
_QUALITY = ("status", "converged", "suspect", "energy_std", "jk", "multiplicity")


class TableSource(Source):
    """A source that qm1b reads; without a target all rows, for a prediction."""

    def __init__(self, path: Path, target: Target | None) -> None:
        super().__init__(path)
        self.target = target
        self._of_target = () if target is None else target.fields
        further = _TO_PREDICT if target is None else _QUALITY
        self._data = self._open([*_POSITION, *further, *self._of_target])
        self.free_atoms = self._data.free_atom_energies

    def _open(self, fields: list[str]) -> Indexed:
        raise NotImplementedError

    @cached_property
    def sizes(self) -> list[int]:
        """Rows of each shard or row group, from its header."""
        return self._data.sizes

    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """Read one part (`Source.read_part`)."""
        batch = self._data.part(number)
        needed = {"smiles", "numbers", "positions", *self._of_target}
        missing = sorted(name for name in needed if name not in batch)
        if missing:
            raise UserError(f"{self.path} has no {', '.join(missing)}; {self._needs(missing)}")
        of_atoms = {"positions (pos)": batch["positions"]}
        of_atoms |= {FORCES: batch[FORCES]} if FORCES in self._of_target else {}
        for what, values in of_atoms.items():
            if len(values) != len(batch["numbers"]):
                raise UserError(
                    f"{self.path} is damaged: part {number} has {len(batch['numbers'])} atomic "
                    f"numbers (z) but {len(values)} {what}"
                )
        forms = batch["jk"].tolist() if "jk" in batch else ["exact"] * len(batch)
        self._fitted[number] = Counter(form == FITTED for form in forms if form)
        samples = self._samples(batch, sum(self.sizes[:number]))
        return kept(samples, self._tests(batch), self.target is not None)

    def _needs(self, missing: list[str]) -> str:
        if self.target is None:
            return "a prediction needs them"
        advice = "; `qm1b generate --forces` computes forces" if FORCES in missing else ""
        return f"--target {self.target.name} needs {' and '.join(self._of_target)}{advice}"

    def _samples(self, batch: Batch, first: int) -> Samples:
        if "line" in batch and "conformer" in batch:
            pairs = zip(batch["line"].tolist(), batch["conformer"].tolist(), strict=True)
            keys = texts(f"line {line} conformer {conformer}" for line, conformer in pairs)
        else:
            keys = texts(f"row {first + i}" for i in range(len(batch)))
        targets = np.full(len(batch), np.nan)
        if self.target is not None:
            targets = self.target.of_fields(batch.columns).astype(np.float64)
        charges = batch["charge"].tolist() if "charge" in batch else [0] * len(batch)
        learned = FORCES in self._of_target
        return Samples(
            numbers=batch["numbers"],
            positions_bohr=batch["positions"],
            atom_offset=batch["atom_offset"],
            targets=targets,
            smiles=batch["smiles"],
            keys=keys,
            molecules=identity.names(batch),
            reasons=texts([""] * len(batch)),
            ids=batch["id"] if "id" in batch else texts([""] * len(batch)),
            doubts=texts(map(of_charge, charges)),
            forces=batch[FORCES].astype(np.float32) if learned else None,
        )

    def _tests(self, batch: Batch) -> dict[str, np.ndarray]:
        """Which rows pass, by the reason for dropping the others."""
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
        if "multiplicity" in batch:  # the network does not know of spins
            tests["an open shell"] = batch["multiplicity"] == 1
        return tests


class RunSource(TableSource):
    """A folder of `qm1b generate`, whose run need not be complete; its parts are its shards."""

    def _open(self, fields: list[str]) -> Indexed:
        self._folder = ShardFolder(self.path, fields)
        if not self._folder.shards:
            raise UserError(f"folder {self.path} holds no shards yet; let its qm1b generate run")
        completeness.notice(self._folder)  # refuses a folder that has lost a shard
        return self._folder

    @property
    def units(self) -> dict[str, str]:
        """Hartree and Bohr: qm1b keeps atomic units."""
        return {name: self._data.units[name] for name in ("positions", *self._of_target)}

    def fingerprint(self) -> str:
        """A hash of the manifest's fingerprint and of every shard's checksum: exact."""
        sha = hashlib.sha256(self._folder.metadata["fingerprint"].encode())
        for path in self._folder.shards:
            with open(path, "rb") as stream:
                sha.update(path.name.encode() + stream.read(BLOCK))
        return sha.hexdigest()


class ParquetSource(TableSource):
    """A Parquet file with QM1B's columns; its parts are its row groups.

    Its end, which the fingerprint covers, holds the place of every column chunk.
    """

    def _open(self, fields: list[str]) -> Indexed:
        return ParquetFile(self.path, fields)

    @property
    def units(self) -> dict[str, str]:
        """Units of QM1B's columns: energies in eV, forces in eV/Angstrom."""
        units = {"pos": "bohr"}
        for name in self._of_target:
            energy = CONVERTED.get(name)
            unit = "eV/angstrom" if name == FORCES else "eV"
            units[energy.column if energy else name] = unit if energy else "e*bohr"
        return units
