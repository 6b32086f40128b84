"""Where a command puts its results: standard output, or files that the user names."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.host.temporaries import write_text

TO_STDOUT = Path("-")
"""The target that means: print it."""


def check_folders(files: Iterable[Path | None]) -> None:
    """Refuse, before anything is computed, files that have no folder to lie in.

    Raises:
        OSError: the system does not allow the name.
        UsageError: there is no folder, or the file is one.
    """
    for path in files:
        if path is None or path == TO_STDOUT:
            continue
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()  # raises OSError if the name is too long
        if not path.absolute().parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}; make it first")
        if path.is_dir():
            raise UsageError(f"{path} is a folder: give the name of a file")


def put_json(text: str, target: Path) -> None:
    """Print JSON, or write it to a file; raises UsageError if the file cannot be written."""
    if target == TO_STDOUT:
        print(text, flush=True)
    else:
        with writing(target):
            write_text(target, f"{text}\n")


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Write a file of the user's; raises UsageError if the system refuses."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}; give another file") from error
