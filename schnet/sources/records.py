"""Whatever `qm1b generate` reads, for predictions: lists and tables of SMILES, SDF, archives.

A molecule without a geometry gets the first conformer that `qm1b generate` makes of it with the
same seed.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from pyscf_ipu.molecule.files.framing import MAX_ATOMS
from qm1b import inputs
from qm1b.conformers.embed import embed_or_drop
from qm1b.rows.schema import DROP_REASONS, Drop
from qm1b.screening.limits import Dropped, Limits
from qm1b.screening.screen import Screen
from qm1b.settings import PRESETS, RunSettings
from schnet.errors import UserError
from schnet.samples.samples import Sample, Samples, of_charge, without_atoms
from schnet.sources.base import Reasons, Source

PART_RECORDS = 256


class RecordSource(Source):
    """The records of an input of qm1b."""

    def __init__(self, path: Path, kind: str, seed: int = 0) -> None:
        super().__init__(path)
        self._settings = RunSettings(PRESETS["qm1b"], 1, seed=seed, input_format=kind)
        if kind in inputs.REMARKS:
            self.remarks = (f"{path}: {inputs.REMARKS[kind]}",)
        try:
            records = [one for one in inputs.read(path, self._settings) if not _is_blank(one)]
        except UserError as error:
            if "column" not in str(error):
                raise
            raise UserError(  # the message names an option that only qm1b has
                f"{path} has no column called smiles, or several; give a table with one"
            ) from None
        if not records:
            raise UserError(f"{path} is empty; give one SMILES per line")
        parts = range(0, len(records), PART_RECORDS)
        self._records = [records[i : i + PART_RECORDS] for i in parts]

    @cached_property
    def sizes(self) -> list[int]:
        """Records of each part; empty lines do not count."""
        return list(map(len, self._records))

    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """Read one part (`Source.read_part`)."""
        return Samples.of([self._row(record) for record in self._records[number]]), Reasons()

    def _row(self, record: inputs.Record) -> Sample:
        """A molecule; without atoms, and with the reason, if there is no geometry of it."""
        screen = Screen(Limits(_n_ao, max_aos=MAX_ATOMS, keep_charged=True))  # it knows no others
        key = f"{'record' if record.block else 'line'} {record.number}"
        result = screen(record)
        if not isinstance(result, Drop):
            made = embed_or_drop(result, self._settings)
            result = made.drop or made.conformers[0]
        if isinstance(result, Drop):
            why = f"{result.reason}: {result.detail or DROP_REASONS[result.reason]}"
            return without_atoms(result.smiles, key, why, name=record.id)
        doubts = [of_charge(result.charge), *screen.remarks]
        return Sample(
            result.numbers,
            result.positions.astype(np.float32),
            float("nan"),
            smiles=record.smiles or result.smiles,
            key=key,
            id=record.id,
            doubt="; ".join(filter(None, doubts)),
        )


def _is_blank(record: inputs.Record) -> bool:
    """Whether nothing is on a line, not even a name."""
    return not (record.smiles or record.block or record.id) and record.reason in ("", "empty")


def _n_ao(numbers: Sequence[int]) -> int:
    """No functions: a network has no basis. But RDKit has a limit of atoms."""
    if len(numbers) > MAX_ATOMS:
        raise Dropped("too_large", f"{len(numbers)} atoms; {MAX_ATOMS} at most")
    return 0
