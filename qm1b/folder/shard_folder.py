"""The shards of a run's folder as one dataset."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from pyscf_ipu.elements.spellings import SYMBOLS
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.manifest.manifest import Manifest, contradiction
from qm1b.folder.manifest.manifest_schema import KILLED, RUNNING
from qm1b.reference import atomisation
from qm1b.rows.batch import Batch
from qm1b.rows.dataset import Indexed
from qm1b.rows.schema import Drop
from qm1b.storage.files import refuse_stream
from qm1b.storage.foreign_hdf5 import values
from qm1b.storage.lock import is_held

Of = TypeVar("Of")


class ShardFolder(Indexed):
    """A folder of shards."""

    def __init__(self, path: Path, fields: Sequence[str] | None = None) -> None:
        super().__init__(path, fields)
        if path.is_file():
            raise UserError(f"{path} is a file; give the folder of a run of qm1b generate")
        self.metadata = shards.read_metadata(path)
        self.manifest = Manifest.from_dict(self.metadata)
        self.shards = shards.shards(path)

    def part(self, number: int) -> Batch:
        """The rows of a shard."""
        return self._only(self.unit(number)[0])

    def unit(self, number: int) -> tuple[Batch, list[Drop]]:
        """The rows and dropped lines of a shard.

        Rows that were written before their free atoms were known get the atomisation energy that
        the manifest gives.

        Raises:
            Damaged: the file is not what was written.
            UserError: it cannot be read, or the manifest says something else than the shard.
        """
        path = self.shards[number]
        attributes, batch, drops = shards.read_whole(path)
        lines = {*batch["line"].tolist(), *(drop.line for drop in drops)}
        free_atoms = self.manifest.free_atom_energies_hartree
        problem = contradiction(
            self.manifest, shards.unit_of(path), attributes, lines=sorted(lines)
        )
        if not problem and atomisation.contradicts(batch, free_atoms):
            problem = atomisation.CONTRADICTION
        if problem:
            raise UserError(
                f"folder {self.path}: the manifest contradicts {path.name}: in the manifest "
                f"{problem}. If the shard is of this run, its `qm1b generate` command, run again, "
                "writes a new manifest; else move the shard elsewhere"
            )
        stored = batch["atomisation_energy"]
        if np.isnan(stored).any():
            given = atomisation.of_batch(batch, free_atoms)
            batch.columns["atomisation_energy"] = np.where(np.isnan(stored), given, stored)
        return batch, drops

    @property
    def status(self) -> str:
        """The manifest's, but KILLED for a run under way whose folder no process holds."""
        status = self.manifest.status
        return KILLED if status == RUNNING and not is_held(self.path) else status

    def check(self) -> None:
        """Compare the manifest with a shard before anything in it is used; `unit` does with all."""
        if self.shards:
            self.unit(0)

    @cached_property
    def sizes(self) -> list[int]:
        """Rows of each shard."""
        return self._each("line", len)

    @cached_property
    def free_atoms_of_rows(self) -> dict[str, float]:
        """`free_atom_energies` of the elements that occur in the rows, the lightest first."""
        present = {int(z) for numbers in self._each("numbers", np.unique) for z in numbers}
        symbols = [SYMBOLS[z] for z in sorted(present) if z < len(SYMBOLS)]  # a damaged number
        return {s: e for s in symbols if (e := self.free_atom_energies.get(s)) is not None}

    def _each(self, name: str, of: Callable[[np.ndarray], Of]) -> list[Of]:
        """A function of numbers of each shard, which need not be read whole."""
        import h5py

        results = []
        for path in self.shards:
            try:
                refuse_stream(path)
                with h5py.File(path, "r") as file:
                    results.append(of(values(file, "rows", name, is_text=False)))
            except (OSError, KeyError, RuntimeError) as error:  # RuntimeError: h5py's
                raise UserError(
                    f"shard {path} is damaged ({error}); delete it and run the same qm1b generate "
                    "again"
                ) from None
        return results

    def batches(self) -> Iterator[Batch]:
        """All rows in the order of the input, a shard at a time."""
        for number in range(len(self.shards)):
            yield self.part(number)
