"""`schnet evaluate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro


@dataclass(frozen=True)
class Evaluate:
    """Print the errors of a run's best weights on its test rows, or on other data."""

    run: tyro.conf.Positional[Path]
    """Folder of a run."""
    data: Path | None = None
    """Data to use instead of the run's own; all of its rows are used."""
    side: Literal["train", "valid", "test"] | None = None
    """Which rows of the run's own data to use; by default the test rows."""
    key: str | None = None
    """Key of extended XYZ in --data that holds the target."""
    unit: str | None = None
    """Unit of the target, if the name of its key does not say it."""

    def __call__(self) -> int:
        """Run the command; returns the exit code."""
        from schnet.commands.jobs import evaluate

        evaluate(self.run, self.data, self.side, key=self.key, unit=self.unit)
        return 0
