"""One writer per folder: a lock that the kernel releases when its owner ends, however it ends."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qm1b.errors import UserError

NAME = ".lock"

LOOK_SECONDS = 0.05
"""`is_held` has the lock for much less, so a writer that is refused tries once more after this."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of an existing folder inside the block.

    The file stays behind, but the lock on it (flock) does not, even after a crash. Worker processes
    do not inherit it.

    Raises:
        UserError: another process holds it, or the file system has no locks or no room.
    """
    try:
        descriptor = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _unusable(folder, error) from None
    try:
        _take(folder, descriptor)
        yield
    finally:
        os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether a process holds the lock of a folder; True also if the lock cannot be looked at.

    Processes on other machines count if the file system shares locks between machines.
    """
    try:
        descriptor = os.open(folder / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # BlockingIOError if a writer has it
        return True
    finally:
        os.close(descriptor)
    return False


def _take(folder: Path, descriptor: int) -> None:
    try:
        _lock(descriptor)
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


def _unusable(folder: Path, error: OSError) -> UserError:
    return UserError(
        f"folder {folder} cannot be written ({error.strerror}); make room, or give another --out"
    )
