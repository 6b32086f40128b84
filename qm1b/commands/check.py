"""`qm1b verify` and `qm1b card`: the audit of a dataset against PySCF, and its card."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import tyro

from pyscf_ipu.base.terminal import say
from qm1b.audit.bounds import Bounds
from qm1b.commands.ending import warn_if_incomplete
from qm1b.errors import UserError

EXIT_FAILED = 1


@dataclass(frozen=True)
class Verify:
    """Check all rows of a dataset, and recompute some with PySCF in float64.

    Exits with 1 if an invariant is broken or a bound is exceeded. Bounds not given here are those
    of the precision and basis.
    """

    stdout_is_log: ClassVar = True

    folder: tyro.conf.Positional[Path]
    """Folder made by qm1b generate."""
    sample: int = 100
    """Rows to draw at random and recompute; up to this many energy outliers are recomputed too."""
    seed: int = 0
    """Seed of the random draw; another seed draws other rows."""
    workers: int = 0
    """PySCF processes; 0 for one per core."""
    thorough: bool = False
    """Look for a lower SCF state for every row, not only where the energy differs."""
    turned: int = 10
    """Rows of the sample that PySCF also computes in two other orientations, which shows the noise
    of the grid; 0 for none."""
    out: Path | None = None
    """Folder for verify.json and verify.png; if not given, the dataset's."""
    worst: int = 3
    """How many of the worst rows to print for each quantity."""
    bounds: Annotated[Bounds, tyro.conf.arg(name="bound")] = field(default_factory=Bounds)

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from rich.console import Console

        from qm1b.audit.verify import Effort, as_text, verify, write
        from qm1b.process.display import Bar, Plain

        for name in ("sample", "seed", "workers", "turned", "worst"):
            least = int(name == "sample")
            if getattr(self, name) < least:
                value = getattr(self, name)
                raise UserError(f"--{name} is {value}: it must be at least {least}")
        out = self.out or self.folder
        if self.out is not None and not self.out.is_dir():
            raise UserError(f"folder {self.out} does not exist; make it first")
        console = Console(stderr=True)
        with Bar(console) if console.is_terminal else Plain(every=60.0, stderr=True) as display:
            effort = Effort(
                self.workers,
                self.thorough,
                lambda *counts: display.update(_Recomputed(*counts)),
                turned=self.turned,
            )
            bounds = vars(self.bounds)
            audit = verify(self.folder, self.sample, self.seed, bounds=bounds, effort=effort)
        say(as_text(audit, self.worst))
        for path in write(audit, out):
            say(path)
        return EXIT_FAILED if audit.missed else 0


@dataclass(frozen=True)
class _Recomputed:
    """What the audit shows of its recomputations."""

    rows: int
    expected: int
    notes = ()

    @property
    def pace(self) -> str:
        return f"PySCF {self.rows}/{self.expected}"


@dataclass(frozen=True)
class Card:
    """Write a dataset card in the form of Datasheets for Datasets, with figures.

    Run qm1b verify first, so that the card can state the measured errors.
    """

    stdout_is_log: ClassVar = True

    folder: tyro.conf.Positional[Path]
    """Folder made by qm1b generate."""
    out: Path | None = None
    """Folder for README.md and its figures; if not given, card in the dataset's folder."""
    parquet: Path | None = None
    """A Parquet file of qm1b export, to be described in croissant.json."""
    name: str | None = None
    """Name of the dataset; if not given, that of the folder."""
    license: str = ""
    """Licence of the dataset, as an SPDX identifier; if not given, the card says "not stated"."""
    purpose: str = ""
    """Why the dataset was made."""
    creators: list[str] = field(default_factory=list)
    """Who made it."""
    contact: str = ""
    """Whom to ask."""
    url: str = ""
    """Where it is published."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from qm1b.report.card.facts import Statements
        from qm1b.report.card.write import write

        name = self.name or self.folder.resolve().name
        statements = Statements(
            name,
            self.license,
            self.purpose,
            creators=self.creators,
            contact=self.contact,
            url=self.url,
        )
        out = self.out or self.folder / "card"
        for path in write(self.folder, out, statements, parquet=self.parquet):
            say(path)
        warn_if_incomplete(self.folder)
        return 0
