"""`qm1b card`: a datasheet of a dataset."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import tyro

from .warning import warn_if_incomplete


@dataclass(frozen=True)
class Card:
    """Write a dataset card in the form of Datasheets for Datasets, with figures.

    Run qm1b verify before it, so that the card has the measured errors.
    """

    folder: tyro.conf.Positional[Path]
    """Folder of a qm1b generate."""
    out: Path | None = None
    """Folder for README.md and its figures; if not given, card in the dataset's folder."""
    parquet: Path | None = None
    """A file of qm1b export: describe it in croissant.json too."""
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
        from ..card import write
        from ..facts import Statements

        name = self.name or self.folder.resolve().name
        said = Statements(
            name, self.license, self.purpose, self.creators, self.contact, self.url
        )  # fmt: skip
        for path in write(self.folder, self.out or self.folder / "card", said, self.parquet):
            print(path)
        warn_if_incomplete(self.folder)
        return 0
