"""`qm1b merge`: the folders of `qm1b generate --shard` as one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Merge:
    """Join the folders of qm1b generate --shard into one, as if a single run had filled it."""

    folders: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of the parts."""
    out: Path
    """Folder for the whole; it may contain the parts' folders."""
    allow_other_versions: bool = False
    """Join parts that different versions of the software computed; rows may then be mixed."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..errors import UserError
        from ..merge import merge

        if not self.folders:
            raise UserError("qm1b merge needs the folders to join.")
        done = merge(self.folders, self.out, self.allow_other_versions)
        print(
            f"{self.out}: {done.tally.rows} conformers of {done.tally.kept} in "
            f"{done.tally.units} shards ({done.copied} copied now), from {len(self.folders)} "
            f"folder{'s' * (len(self.folders) > 1)}"
        )
        return 0
