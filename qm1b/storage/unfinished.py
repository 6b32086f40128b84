"""Folders that a command fills at once: whole, or marked as unfinished and filled again."""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyscf_ipu.base.host.temporaries import remove_abandoned
from qm1b.errors import UserError
from qm1b.storage.files import make_folder, not_written

MARK = ".unfinished"
"""The file that is there, and locked, while a folder is filled; after a kill it stays."""


@contextmanager
def filling(out: Path, names: Iterable[str]) -> Iterator[None]:
    """Fill a folder that is empty, or that a command which was killed or failed left unfinished.

    Args:
        out: made if it does not exist.
        names: of files and folders in it, which are removed from an unfinished one.

    Raises:
        UserError: it holds something else, is being filled, or cannot be written.
    """
    mark = out / MARK
    marked = os.path.lexists(mark)
    if out.exists() and not (out.is_dir() and (marked or not any(out.iterdir()))):
        raise UserError(f"{out} is not an empty folder; give a new one, or delete it first")
    make_folder(out)
    descriptor = _marked(mark, new=not marked)
    try:
        try:
            for path in map(out.joinpath, names if marked else ()):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    remove_abandoned(path)
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise not_written(path, error) from None
        yield
        try:
            mark.unlink()
        except OSError as error:
            raise not_written(mark, error) from None
    finally:
        with suppress(OSError):  # nothing was written to it
            os.close(descriptor)


def _marked(mark: Path, new: bool) -> int:
    """The open file of a mark, locked until it is closed."""
    how = os.O_CREAT | os.O_EXCL if new else 0
    try:
        descriptor = os.open(mark, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | how, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.fstat(descriptor).st_nlink:  # that process has just ended
            raise BlockingIOError
    except (BlockingIOError, FileNotFoundError, FileExistsError):
        raise UserError(
            f"another process is writing to {mark.parent}; wait for it, or give another folder"
        ) from None
    except OSError as error:
        raise not_written(mark, error) from None
    return descriptor
