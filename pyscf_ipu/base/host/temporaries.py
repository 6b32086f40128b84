"""Files that appear under their name when they are whole: each writer has a temporary file.

A temporary is a new file, never one that was there, and is locked (flock) while its writer lives.
So two writers of one name do not meet, a link that somebody planted leads nowhere, and what a
killed writer left is known, and removed by the next writer of the same name.
"""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from pyscf_ipu.base.errors import UntrustedCache, UsageError

LOOKED_AT = 8
"""As many names are searched for what killed writers left; others, too, if they are in the way."""

LONGEST = 230
"""Bytes of a name that a temporary's name repeats: with what SQLite appends, 255 are allowed."""

STREAMS = tuple(map(Path, ("/dev", "/dev/fd", "/proc/self/fd")))
"""Folders whose files have no other beside them that could take their place."""

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A file that gets this name at the end of the block, or is removed if the block fails.

    If `path` is a symbolic link, the file that it points to is replaced, and the link stays. What
    is no plain file (a pipe, a device) is written directly. Libraries may write to the stream's
    `name`.

    Raises:
        OSError: it cannot be written, a link leads nowhere, or there is a folder of this name.
    """
    if _is_stream(path):
        with open(path, "wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    with temporary(target, mode) as stream:
        yield stream
        publish(stream, target)


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8; raises as `replacing`."""
    with replacing(Path(path)) as stream:
        stream.write(text.encode())


@contextmanager
def temporary(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A new file beside `path` for this writer alone, removed at the end unless it is published.

    The umask applies to the mode; raises OSError if the file cannot be made.
    """
    descriptor, name = _create(path, mode)
    with open(name, "w+b", opener=lambda *_: descriptor) as stream:
        try:
            yield stream
        finally:
            with suppress(OSError):
                if _is_at(descriptor, name):
                    os.unlink(name)


def publish(stream: IO[bytes], path: Path) -> None:
    """Give a temporary file its name, and make both last through a power cut."""
    stream.flush()
    os.fsync(stream.fileno())
    os.replace(stream.name, path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names of files in a folder last through a power cut."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_abandoned(path: Path) -> None:
    """Remove the temporaries of `path` whose writers are dead."""
    for name in islice(_names(path), LOOKED_AT):
        remove_if_abandoned(name)


def remove_if_abandoned(name: Path) -> None:
    """Remove a temporary if it is a plain file, and nobody has its lock or refuses a look."""
    with suppress(OSError):
        descriptor = os.open(name, _LOOK)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(descriptor, name):
                    os.unlink(name)
        finally:
            os.close(descriptor)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder for the block; raises UsageError if it cannot be written."""
    try:
        with TemporaryDirectory(prefix="pyscf-ipu-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except UntrustedCache:  # which says itself what to do
        raise
    except OSError as error:
        raise UsageError(
            f"temporary files cannot be written ({error.strerror}): make room, or name another "
            "folder by the environment variable TMPDIR"
        ) from error


def _create(path: Path, mode: int) -> tuple[int, Path]:
    """The descriptor and name of a new, locked file."""
    remove_abandoned(path)
    for name in _names(path):
        remove_if_abandoned(name)
        try:
            descriptor = os.open(name, _NEW, mode)
        except FileExistsError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # somebody looks at it, and removes it
        except OSError:
            return descriptor, name  # without locks, nobody removes it
        else:
            if _is_at(descriptor, name):
                return descriptor, name
        os.close(descriptor)
    raise AssertionError("names do not end")


def _names(path: Path) -> Iterator[Path]:
    """The names of temporaries: .NAME.tmp, .NAME.1.tmp and so on."""
    name = path.name
    if len(os.fsencode(name)) > LONGEST:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    for number in count():
        yield path.with_name(f".{name}.{number}.tmp" if number else f".{name}.tmp")


def _is_at(descriptor: int, name: Path) -> bool:
    """Whether the open file still has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(name))
    except FileNotFoundError:
        return False


def _is_stream(path: Path) -> bool:
    """Whether a file is no plain one; raises OSError for a folder or an impossible name."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return not stat.S_ISREG(mode) or path.parent in STREAMS
