"""Standard input as an input: kept as a file in the output folder, where a resumed run finds it.

A run reads its input twice (once to count and hash it), and again each time it is resumed. A pipe
can be read only once.
"""

import filecmp
import io
import shutil
import sys
from pathlib import Path
from typing import IO

from pyscf_ipu.base.host.temporaries import publish, remove_if_abandoned, temporary
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.storage.lock import locked

NAME = "stdin"
"""The file in the output folder."""

PIPE = Path("-")


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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f".{NAME}-*.tmp"):  # by an earlier version
            remove_if_abandoned(left)
        with temporary(path) as arriving:
            n_bytes = _copy(stream, arriving)
            if not path.exists():
                if n_bytes == 0:
                    raise UserError("nothing came in on standard input; pipe molecules into `-`")
                publish(arriving, path)
            elif n_bytes and not filecmp.cmp(arriving.name, path, shallow=False):
                _replace(folder, arriving, path)
    except OSError as error:
        raise UserError(
            f"standard input cannot be kept in {folder} ({error.strerror}); give another --out"
        ) from None
    return path


def _replace(folder: Path, arriving: IO[bytes], path: Path) -> None:
    """Replace the file with what came in, unless a run has made shards from it."""
    with locked(folder):
        if shards.shards(folder):
            raise UserError(
                f"standard input is not what the run in {folder} began with (kept in {path}); "
                "give the same input again, give none, or give another --out"
            )
        publish(arriving, path)


def _copy(stream: io.BufferedIOBase | None, file: IO[bytes]) -> int:
    """Write what comes in to a file; returns the number of bytes."""
    if stream is None and (sys.stdin is None or sys.stdin.isatty()):
        return 0
    shutil.copyfileobj(stream or sys.stdin.buffer, file)
    file.flush()
    return file.tell()
