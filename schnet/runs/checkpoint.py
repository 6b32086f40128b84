"""Checkpoints: a line of JSON, then the arrays. A kill while one is written leaves the old one.

The first line also holds a hash of the rest, which is checked before the rest is read.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx

from qm1b.storage.files import atomic_write
from schnet.errors import UserError

Tree = TypeVar("Tree")
Note = dict[str, Any]
"""JSON that is kept with the arrays."""

VERSION = 1


def save(path: Path, tree: object, note: Mapping[str, object]) -> None:
    """Write the arrays of a tree and a note to a file that replaces an older one. Raises UserError
    if the disk is full or not writable."""
    arrays = io.BytesIO()
    eqx.tree_serialise_leaves(arrays, tree)
    body = arrays.getvalue()
    head = {"version": VERSION, "sha256": hashlib.sha256(body).hexdigest(), "note": note}
    text = json.dumps(head).encode() + b"\n"
    atomic_write(path, lambda stream: stream.write(text + body))


def load(path: Path, like: Tree) -> tuple[Tree, Note]:
    """Read a tree with arrays of the shapes of `like`, and its note.

    Raises:
        UserError: the file does not exist, is damaged, or belongs to another network.
    """
    try:
        line, _, body = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise UserError(f"checkpoint {path} cannot be read: {error.strerror}") from None
    try:
        head = json.loads(line)
        good = head["version"] == VERSION and hashlib.sha256(body).hexdigest() == head["sha256"]
    except (ValueError, KeyError, TypeError):
        good = False
    if not good:
        raise UserError(
            f"checkpoint {path} is damaged or of another version; delete it and train again, or "
            "use another one"
        )
    try:
        return eqx.tree_deserialise_leaves(io.BytesIO(body), like), head["note"]
    except (RuntimeError, ValueError, EOFError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise UserError(f"checkpoint {path} is of another network ({reason})") from None
