"""Lists and tables of SMILES, for predictions: RDKit makes one geometry of each."""

import gzip
import io
import zlib
from functools import cached_property
from pathlib import Path

import numpy as np

from pyscf_ipu.errors import InvalidMolecule
from pyscf_ipu.molecule.molecule import Molecule
from qm1b.inputs import lines, tables
from schnet.errors import UserError
from schnet.samples.samples import Sample, Samples, without_atoms
from schnet.sources.base import Reasons, Source

PART_LINES = 256

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
ENDINGS = (".smi", ".smiles", ".smi.gz", ".smiles.gz", *TABLES)


class SmilesSource(Source):
    """The molecules of a list, or of the SMILES column of a table.

    Geometries come from ETKDGv3 with the given seed and are not relaxed, which is also the default
    of `qm1b generate`.
    """

    def __init__(self, path: Path, seed: int = 0) -> None:
        super().__init__(path)
        self.seed = seed
        opened = gzip.open if path.suffix == ".gz" else open
        try:
            with opened(path, "rb") as stream:
                text = io.TextIOWrapper(stream, "utf-8-sig", errors="replace")  # type: ignore[arg-type]
                read = tables.entries if path.name.endswith(TABLES) else lines.entries
                entries = [entry.smiles for entry in read(text)]
        except UserError:  # it names an option that only qm1b has
            raise UserError(
                f"{path} has no column called smiles, or several; give a table with one"
            ) from None
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"{path} cannot be read ({error}); give one SMILES per line") from None
        found = [(i, smiles) for i, smiles in enumerate(entries, 1) if smiles]
        if not found:
            raise UserError(f"{path} is empty; give one SMILES per line")
        self._lines = [found[i : i + PART_LINES] for i in range(0, len(found), PART_LINES)]

    @cached_property
    def sizes(self) -> list[int]:
        """Lines of each part; empty ones do not count."""
        return list(map(len, self._lines))

    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """See `Source.read_part`."""
        rows = [self._row(line, smiles) for line, smiles in self._lines[number]]
        return Samples.of(rows), Reasons()

    def _row(self, line: int, smiles: str) -> Sample:
        """A molecule; without atoms, and with the reason, if there is no geometry of it."""
        if not smiles.isascii():
            return without_atoms(smiles, f"line {line}", "holds bytes that are not SMILES text")
        try:
            found = Molecule.from_smiles(smiles, self.seed)
        except InvalidMolecule as error:
            return without_atoms(smiles, f"line {line}", str(error))
        numbers = found.numbers.astype(np.uint8)
        positions = found.positions.astype(np.float32)
        return Sample(numbers, positions, float("nan"), smiles=smiles, key=f"line {line}")
