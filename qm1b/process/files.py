"""Files that are written whole or not at all."""

import errno
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from qm1b.errors import UserError


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, if it does not exist.

    Raises:
        UserError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"folder {path} cannot be written ({error.strerror}); give another folder"
        ) from None


def write_json(path: Path, values: Mapping[str, object], indent: int = 2) -> None:
    """Write a JSON object; raises as `atomic_write`."""
    write_text(path, json.dumps(values, indent=indent, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8; raises as `atomic_write`.

    Lone surrogates, by which Python represents file names that are not text, are escaped. JSON
    turns them back into what they were.
    """
    data = text.encode(errors="backslashreplace")
    atomic_write(path, lambda stream: stream.write(data))


def atomic_write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Call `write` on a temporary file beside `path`, sync it, and give it its name.

    If `path` is a symbolic link, the file that it points to is written, and the link stays.

    Raises:
        UserError: the disk is full or not writable, or a link leads nowhere.
    """
    given, path = path, Path(os.path.realpath(path)) if path.is_symlink() else path
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        if path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        with open(temporary, "w+b") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise not_written(given, error) from error


def not_written(path: Path, error: OSError) -> UserError:
    """What to say of a file that could not be written."""
    if isinstance(error, FileNotFoundError) and not path.parent.is_dir():
        return UserError(
            f"folder {path.parent} is gone: somebody deleted or moved it while it was being "
            "filled; put it back, and the same command goes on, or run it again from the start"
        )
    return UserError(
        f"cannot write {path}: {error.strerror or error}; make room or give another folder"
    )


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut, where the system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
