"""`qm1b info`: what a dataset folder holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Info:
    """Say what a dataset folder holds."""

    folder: tyro.conf.Positional[Path]
    """Folder of a qm1b generate."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..info import describe

        print(describe(self.folder))
        return 0
