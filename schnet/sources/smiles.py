"""Lists and tables of SMILES, for predictions: RDKit makes one geometry of each."""

from functools import cached_property
from pathlib import Path

import numpy as np

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.molecule.molecule import Molecule
from qm1b import inputs
from qm1b.inputs.records import MAX_CHARACTERS
from qm1b.settings import PRESETS, RunSettings
from schnet.errors import UserError
from schnet.samples.samples import Sample, Samples, without_atoms
from schnet.sources.base import Reasons, Source

PART_LINES = 256

ENDINGS = tuple(f".{end}{gz}" for end in "smi smiles txt csv tsv".split() for gz in ("", ".gz"))


class SmilesSource(Source):
    """The molecules of a list, or of the SMILES column of a table.

    Geometries come from ETKDGv3 with the given seed and are not relaxed, which is also the default
    of `qm1b generate`.
    """

    def __init__(self, path: Path, seed: int = 0) -> None:
        super().__init__(path)
        self.seed = seed
        kind = inputs.resolve(path)
        if kind in inputs.GEOMETRIES:
            raise UserError(f"{path} looks like {kind}; give SMILES, or .xyz for geometries")
        if kind in inputs.REMARKS:
            self.remarks = (f"{path}: {inputs.REMARKS[kind]}",)
        try:
            entries = inputs.read(path, RunSettings(PRESETS["qm1b"], 1, input_format=kind))
            lines = [one for one in entries if one.smiles or one.reason not in ("", "empty")]
        except UserError as error:
            if "column" not in str(error):
                raise
            raise UserError(  # the message names an option that only qm1b has
                f"{path} has no column called smiles, or several; give a table with one"
            ) from None
        if not lines:
            raise UserError(f"{path} is empty; give one SMILES per line")
        self._lines = [lines[i : i + PART_LINES] for i in range(0, len(lines), PART_LINES)]

    @cached_property
    def sizes(self) -> list[int]:
        """Lines of each part; empty ones do not count."""
        return list(map(len, self._lines))

    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """Read one part (`Source.read_part`)."""
        return Samples.of([self._row(record) for record in self._lines[number]]), Reasons()

    def _row(self, record: inputs.Record) -> Sample:
        """A molecule; without atoms, and with the reason, if there is no geometry of it."""
        line, smiles = record.number, record.smiles
        if record.reason or len(smiles) > MAX_CHARACTERS:
            why = record.detail or f"a SMILES of more than {MAX_CHARACTERS} characters"
            return without_atoms(smiles[:MAX_CHARACTERS], f"line {line}", why)
        if not smiles.isascii():
            return without_atoms(smiles, f"line {line}", "holds bytes that are not SMILES text")
        try:
            molecule = Molecule.from_smiles(smiles, self.seed)
        except InvalidMolecule as error:
            return without_atoms(smiles, f"line {line}", str(error))
        numbers = molecule.numbers.astype(np.uint8)
        positions = molecule.positions.astype(np.float32)
        return Sample(numbers, positions, float("nan"), smiles=smiles, key=f"line {line}")
