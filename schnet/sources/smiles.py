"""Lists of SMILES, one a line, for predictions: RDKit makes one geometry of each."""

from __future__ import annotations

import gzip
import io
import zlib
from functools import cached_property
from pathlib import Path

import numpy as np

from pyscf_ipu.errors import InvalidMolecule
from pyscf_ipu.molecule import Molecule
from qm1b.inputs import lines

from ..errors import UserError
from ..samples import Sample, Samples
from .base import Reasons, Source, digest

PART_LINES = 256

ENDINGS = (".smi", ".smiles", ".smi.gz", ".smiles.gz")


class SmilesSource(Source):
    """The molecules of a list. Geometries are ETKDGv3's with the seed given, not relaxed: what
    `qm1b generate` makes unless told otherwise."""

    def __init__(self, path: Path, seed: int = 0) -> None:
        super().__init__(path)
        self.seed = seed
        opened = gzip.open if path.suffix == ".gz" else open
        try:
            with opened(path, "rb") as stream, io.TextIOWrapper(stream, "utf-8") as text:  # type: ignore[arg-type]
                entries = [entry.smiles for entry in lines.entries(text)]
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
            raise UserError(f"{path} cannot be read ({error}); give SMILES, one a line.") from None
        self._lines = [(i, smiles) for i, smiles in enumerate(entries, 1) if smiles]
        if not self._lines:
            raise UserError(f"{path} is empty; give SMILES, one a line.")

    @cached_property
    def sizes(self) -> list[int]:
        """Lines of each part that are not empty."""
        starts = range(0, len(self._lines), PART_LINES)
        return [len(self._lines[start : start + PART_LINES]) for start in starts]

    @property
    def units(self) -> dict[str, str]:
        """Nothing in the file has a unit."""
        return {}

    def fingerprint(self) -> str:
        """See `digest`."""
        return digest(self.path)

    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """See `Source.read_part`."""
        part = self._lines[number * PART_LINES : (number + 1) * PART_LINES]
        return Samples.of([self._row(line, smiles) for line, smiles in part]), Reasons()

    def _row(self, line: int, smiles: str) -> Sample:
        try:
            found = Molecule.from_smiles(smiles, self.seed)
        except InvalidMolecule as error:
            raise UserError(f"{self.path}, line {line}: {error}") from None
        return Sample(
            found.numbers.astype(np.uint8),
            found.positions.astype(np.float32),
            float("nan"),
            smiles,
            f"line {line}",
        )
