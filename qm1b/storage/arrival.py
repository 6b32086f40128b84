"""A folder whose files arrive together: all of them, or none, whatever happens on the way.

They are made in a folder within it. From beginning to end there is a list of those that move, so
that after a kill the next one knows them from files of others, removes them and begins again.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyscf_ipu.base.host.temporaries import remove_abandoned, sync_folder
from qm1b.errors import UserError
from qm1b.storage import files, lock

STAGE, LIST = ".arriving", ".arriving.json"


@contextmanager
def arriving(out: Path, last: str) -> Iterator[Path]:
    """A folder within `out` whose files move to `out` at the end of the block.

    If the block or the move fails, none of them is left, nor is `out` if it did not exist.

    Args:
        out: a new or an empty folder, or one in which the same was interrupted.
        last: name of the file that moves last; without it, the others are not complete.

    Raises:
        UserError: `out` holds something else, is in use, or cannot be written.
    """
    existed = out.exists()
    _refuse_others(out)
    files.make_folder(out)
    with lock.locked(out):
        _refuse_others(out)
        try:
            with _said(out):
                _remove_own(out, last)
                (out / LIST).touch()
                (out / STAGE).mkdir()
            yield out / STAGE
            with _said(out):
                _move(out, last)
        except BaseException:
            with suppress(OSError):
                _remove_own(out, last)
                (out / lock.NAME).unlink()
                if not existed:
                    out.rmdir()
            raise


def _refuse_others(out: Path) -> None:
    remove_abandoned(out / LIST)
    if out.exists() and not (out.is_dir() and {*os.listdir(out)} <= _own(out)):
        raise UserError(f"{out} exists and is not an empty folder; give another --out")


def _own(out: Path) -> set[str]:
    """The names of what was made here, and of nothing that has changed since."""
    if not (out / LIST).is_file() or any((out / name).is_symlink() for name in (LIST, STAGE)):
        return {lock.NAME}
    try:
        listed = dict(json.loads((out / LIST).read_text() or "{}"))
    except (ValueError, TypeError):  # somebody else wrote it
        return {lock.NAME}
    moved = {path.name for path in out.iterdir() if listed.get(path.name) == _mark(path)}
    return {lock.NAME, LIST, STAGE} | moved


def _mark(path: Path) -> list[int]:
    """What stays the same when a file moves, and not when it is written again."""
    try:
        info = path.lstat()
    except FileNotFoundError:  # it moves now
        return []
    return [info.st_size, info.st_mtime_ns]


def _move(out: Path, last: str) -> None:
    paths = sorted((out / STAGE).iterdir(), key=lambda path: path.name == last)
    files.write_json(out / LIST, {path.name: _mark(path) for path in paths})
    for path in paths:
        if path.name == last:
            sync_folder(out)
        path.replace(out / path.name)
    (out / STAGE).rmdir()
    sync_folder(out)
    (out / LIST).unlink()


def _remove_own(out: Path, last: str) -> None:
    """Remove what has arrived, `last` first, then the folder within, then the list."""
    own = _own(out)
    for name in sorted(own - {lock.NAME, LIST, STAGE}, key=lambda name: name != last):
        (out / name).unlink()
    if LIST in own:
        with suppress(FileNotFoundError):
            for path in (out / STAGE).iterdir():
                path.unlink()
            (out / STAGE).rmdir()
        (out / LIST).unlink()


@contextmanager
def _said(out: Path) -> Iterator[None]:
    """Say in a sentence what the system refuses."""
    try:
        yield
    except OSError as error:
        raise files.not_written(out, error) from error
