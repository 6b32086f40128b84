"""How the command was called, and how it may end."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from ..errors import UserError

EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def exit_code(name: str, run: Callable[[], int]) -> int:
    """Run a command; a user's mistake ends in one sentence on stderr, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file may have a name that is no text
            stream.reconfigure(errors="backslashreplace")
    try:
        code = run()
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def this_command() -> str:
    """How to call `qm1b` again from here."""
    if shutil.which("qm1b"):
        return "qm1b"
    script = Path(sys.argv[0])
    if script.name != "qm1b":
        return "python -m qm1b.cli"
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)
