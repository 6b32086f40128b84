"""`schnet evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro


@dataclass(frozen=True)
class Evaluate:
    """Errors of a run's best weights on its test rows, or on other data."""

    run: tyro.conf.Positional[Path]
    """Folder of a run."""
    data: Path | None = None
    """Other data: all of its rows."""
    side: Literal["train", "valid", "test"] | None = None
    """Which rows of the run's own data; the test rows if not given."""
    key: str | None = None
    """Key of extended XYZ in --data that holds the target."""
    unit: str | None = None
    """Its unit, if the key does not say it."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..run import evaluate

        evaluate(self.run, self.data, self.side, self.key, self.unit)
        return 0
