"""Files that are written whole or not at all."""

import errno
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from pyscf_ipu.base.host.temporaries import replacing
from pyscf_ipu.base.terminal import LIMITS
from qm1b.errors import UserError


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, if it does not exist.

    Raises:
        UserError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "a file has this name" if path.is_file() else error.strerror
        raise UserError(f"folder {path} cannot be written ({why}); give another folder") from None


def refuse_stream(path: Path) -> None:
    """Raise OSError where something stands that is no plain file: to read a pipe may not end."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no plain file", str(path))


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
    """Call `write` on a temporary file of this writer alone, sync it, and give it its name.

    If `path` is a symbolic link, the file that it points to is written, and the link stays.

    Raises:
        UserError: the disk is full or not writable, or a link leads nowhere.
    """
    try:
        with replacing(path) as stream:
            write(stream)
    except OSError as error:
        raise not_written(path, error) from error


def not_written(path: Path, error: OSError) -> UserError:
    """What to say of a file that could not be written."""
    if isinstance(error, FileNotFoundError) and not path.parent.is_dir():
        return UserError(
            f"folder {path.parent} is gone: somebody deleted or moved it while it was being "
            "filled; put it back, and the same command goes on, or run it again from the start"
        )
    advice = LIMITS.get(error.errno or 0, "make room or give another folder")
    return UserError(f"cannot write {path}: {error.strerror or error}; {advice}")
