"""Checkpoints: a line of JSON, then the arrays; a kill leaves the old one or the new.

The first line also holds a hash of the rest, which is compared before it is read.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx

from qm1b.store import atomic_write

from .errors import UserError

Tree = TypeVar("Tree")
VERSION = 1


def save(path: Path, tree: Any, note: dict[str, Any]) -> None:
    """Write the arrays of a tree and a note to a file that replaces an older one.

    Raises:
        UserError: the disk is full or not writable.
    """
    arrays = io.BytesIO()
    eqx.tree_serialise_leaves(arrays, tree)
    body = arrays.getvalue()
    head = {"version": VERSION, "sha256": hashlib.sha256(body).hexdigest(), "note": note}
    text = json.dumps(head).encode() + b"\n"
    atomic_write(path, lambda stream: stream.write(text + body))


def load(path: Path, like: Tree) -> tuple[Tree, dict[str, Any]]:
    """The tree, with arrays of the shapes of `like`, and the note.

    Raises:
        UserError: the file is not there, damaged, or of another network.
    """
    head, body = _read(path)
    try:
        tree = eqx.tree_deserialise_leaves(io.BytesIO(body), like)
    except (RuntimeError, ValueError, EOFError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise UserError(f"checkpoint {path} is of another network ({reason}).") from None
    return tree, head["note"]


def note_of(path: Path) -> dict[str, Any]:
    """The note alone; raises as `load`."""
    return _read(path)[0]["note"]


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    try:
        line, _, body = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise UserError(f"checkpoint {path} cannot be read: {error.strerror}.") from None
    try:
        head = json.loads(line)
        good = head["version"] == VERSION and hashlib.sha256(body).hexdigest() == head["sha256"]
    except (ValueError, KeyError, TypeError):
        good = False
        head = {}
    if not good:
        raise UserError(
            f"checkpoint {path} is damaged or of another version; delete it and train again, or "
            "use another one."
        )
    return head, body
