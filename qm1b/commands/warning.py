"""What a command says on stderr of a run that is not at its end, and uses all the same."""

from __future__ import annotations

import sys
from pathlib import Path


def warn_if_incomplete(folder: Path) -> None:
    """One line on stderr if the run in a folder is not complete.

    Raises:
        UserError: no run there, or a shard is lost.
    """
    from ..completeness import notice
    from ..reading import Folder

    found = notice(Folder(folder))
    if found:
        print(f"warning: {found}", file=sys.stderr)
