"""`qm1b select`: the molecules of a large database that are to become a dataset."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pyscf_ipu.base.command_line.options import SeveralPaths
from pyscf_ipu.base.command_line.targets import check_folders
from pyscf_ipu.base.terminal import counted, say
from qm1b.errors import UserError

if TYPE_CHECKING:
    from qm1b.screening.selection import Criteria

ENDINGS = (".smi", ".smiles", ".txt")


@dataclass(frozen=True)
class Select:
    """Choose molecules of a database by their size, in the order of the input.

    Duplicates stay, and so do molecules that cannot be computed: qm1b generate drops them.
    """

    stdout_is_log: ClassVar = True

    files: SeveralPaths
    """SMILES: files as for qm1b generate, compressed or in archives too; read one after another."""
    out: Path
    """File for the lines that are chosen; ends in .smi, .smiles or .txt."""
    heavy: str = "1-100"
    """Number of heavy atoms: 9, or a range as 9-11."""
    max_hydrogens: int = 253
    """Largest number of hydrogens."""
    molecules: float | None = None
    """How many to take, for example 1.09e6; all that fit if not given."""
    fewest_hydrogens: bool = False
    """Take those with the fewest hydrogens, whose orbitals are fewest; among equals, and without
    this flag, the first in the input."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from qm1b.screening.selection import Selection, as_text, select
        from qm1b.storage.files import atomic_write

        criteria = self._criteria()
        if not self.files:
            raise UserError("no files to choose from: give qm1b select files of SMILES")
        if self.out.suffix not in ENDINGS:
            raise UserError(f"--out is {self.out}: its name must end in {', '.join(ENDINGS)}")
        check_folders([self.out])
        done: list[Selection] = []
        atomic_write(
            self.out, lambda stream: done.append(select(self.files, criteria, stream.write))
        )
        say(as_text(done[0], criteria))
        say(f"{self.out}: {counted(done[0].taken.total(), 'molecule')}")
        return 0

    def _criteria(self) -> Criteria:
        from qm1b.screening.selection import MOST_HYDROGENS, Criteria

        match = re.fullmatch(r"(\d+)(?:-(\d+))?", self.heavy)
        low = int(match[1]) if match else 0
        high = int(match[2] or low) if match else 0
        if not 1 <= low <= high:
            raise UserError(f"--heavy is {self.heavy!r}: give a number as 9, or a range as 9-11")
        if not 0 <= self.max_hydrogens <= MOST_HYDROGENS:
            raise UserError(f"--max-hydrogens is {self.max_hydrogens}: give 0 to {MOST_HYDROGENS}")
        count = self.molecules
        if count is not None and not (1 <= count < 2**63 and count == int(count)):
            raise UserError(f"--molecules is {count}: give a whole number of at least 1")
        if self.fewest_hydrogens and count is None:
            raise UserError("--fewest-hydrogens needs --molecules: else all that fit are taken")
        wanted = None if count is None else int(count)
        return Criteria(
            (low, high), self.max_hydrogens, wanted, fewest_hydrogens=self.fewest_hydrogens
        )
