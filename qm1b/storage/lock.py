"""One writer per folder: a lock that the kernel releases when its owner ends, however it ends."""

import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from qm1b.errors import UserError

NAME = ".lock"

_PLAINLY = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Follow no link, and wait for nobody at the other end of a pipe."""

LOOK_SECONDS = 0.05
"""`is_held` has the lock for much less, so a writer that is refused tries once more after this."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of an existing folder inside the block.

    The file stays behind, but the lock on it (flock) does not, even after a crash. Worker processes
    do not inherit it.

    Raises:
        UserError: another process holds it, the file system has no locks or no room, or the file is
            a link or no plain file.
    """
    try:
        descriptor = os.open(folder / NAME, _PLAINLY | os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise _unusable(folder, error) from None
    try:
        if not _is_own(descriptor):
            raise _unusable(folder, OSError(errno.ELOOP, ""))
        _take(folder, descriptor)
        yield
    finally:
        with suppress(OSError):  # what stands in it is for people
            os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether a process holds the lock of a folder; True also if the lock cannot be looked at.

    Processes on other machines count if the file system shares locks between machines.
    """
    try:
        descriptor = os.open(folder / NAME, _PLAINLY | os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # BlockingIOError if a writer has it
        return True
    finally:
        with suppress(OSError):
            os.close(descriptor)
    return False


def _take(folder: Path, descriptor: int) -> None:
    try:
        _lock(descriptor)
        if not os.fstat(descriptor).st_nlink:  # its owner has just removed it with the folder
            raise BlockingIOError
    except BlockingIOError:
        owner = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"
        raise UserError(
            f"folder {folder} is in use by {owner}; wait for it, stop it, or give another --out"
        ) from None
    except OSError as error:
        raise UserError(
            f"folder {folder} is on a file system without locks ({error.strerror}); give an "
            "--out on a local disk, or mount it with locks (flock)"
        ) from None
    try:
        owner = f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%F %T')}\n"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, owner.encode(), 0)
    except OSError as error:
        raise _unusable(folder, error) from None


def _lock(descriptor: int) -> None:
    """Get the lock at once, or after a moment in which somebody may have looked at it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(LOOK_SECONDS)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_own(descriptor: int) -> bool:
    """Whether the open file is a plain one, and has no other name: what is written is only here."""
    info = os.fstat(descriptor)
    return stat.S_ISREG(info.st_mode) and info.st_nlink <= 1


def _unusable(folder: Path, error: OSError) -> UserError:
    if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
        return UserError(
            f"{folder / NAME} is a link, a folder or a pipe, and not the file that locks the "
            "folder: somebody put it there; remove it, or give another --out"
        )
    return UserError(
        f"folder {folder} cannot be written ({error.strerror}); make room, or give another --out"
    )
