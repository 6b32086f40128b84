"""How the command was called, and how it may end."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def this_command() -> str:
    """How to call `qm1b` again from here."""
    if shutil.which("qm1b"):
        return "qm1b"
    script = Path(sys.argv[0])
    if script.name != "qm1b":
        return "python -m qm1b.cli"
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)
