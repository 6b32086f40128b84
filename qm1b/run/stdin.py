"""Standard input as an input: kept as a file in the output folder, where a resumed run finds it.

A run reads its input twice (once to count and hash it), and again each time it is resumed. A pipe
can be read only once.
"""

import fcntl
import filecmp
import io
import os
import sys
from contextlib import suppress
from pathlib import Path

from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.process.lock import locked

NAME = "stdin"
"""The file in the output folder."""

PIPE = Path("-")

CHUNK = 1 << 20


def spooled(folder: Path, stream: io.BufferedIOBase | None = None) -> Path:
    """The file that holds standard input, byte for byte.

    If the folder has one from an earlier run, standard input must be empty (or a terminal) or the
    same again, unless that run left no shard.

    Args:
        folder: the output folder; made if it does not exist.
        stream: standard input unless given.

    Raises:
        UserError: nothing comes in, it is not what came before, a run is using the folder, or the
            disk is full.
    """
    path = folder / NAME
    arriving = folder / f".{NAME}-{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        n_bytes = _copy(stream, arriving)
        if not path.exists():
            if n_bytes == 0:
                raise UserError("nothing came in on standard input; pipe molecules into `-`")
            os.replace(arriving, path)
        elif n_bytes and not filecmp.cmp(arriving, path, shallow=False):
            _replace(folder, arriving, path)
    except OSError as error:
        raise UserError(
            f"standard input cannot be kept in {folder} ({error.strerror}); give another --out"
        ) from None
    finally:
        with suppress(OSError):
            arriving.unlink(missing_ok=True)
    return path


def _replace(folder: Path, arriving: Path, path: Path) -> None:
    """Replace the file with what came in, unless a run has made shards from it."""
    with locked(folder):
        if shards.shards(folder):
            raise UserError(
                f"standard input is not what the run in {folder} began with (kept in {path}); "
                "give the same input again, give none, or give another --out"
            )
        os.replace(arriving, path)


def _remove_abandoned(folder: Path) -> None:
    """Remove what a killed process left; files that are still being written are locked."""
    for path in folder.glob(f".{NAME}-*.tmp"):
        with suppress(FileNotFoundError, BlockingIOError), open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _copy(stream: io.BufferedIOBase | None, path: Path) -> int:
    """Write what comes in to a file; returns the number of bytes."""
    if stream is None and (sys.stdin is None or sys.stdin.isatty()):
        return 0
    source = stream or sys.stdin.buffer
    n_bytes = 0
    with open(path, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # while its writer lives
        while chunk := source.read(CHUNK):
            n_bytes += file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return n_bytes
