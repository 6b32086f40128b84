"""Small results that take seconds and never change, kept on disk beside the compiled programs.

A file's name is a hash of what the result depends on, and so is the checksum in front of the
result: a file that was damaged, renamed or copied is not used.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyscf_ipu.base.host.cache_folder import PRIVATE_FILE, checked_folder, read_trusted
from pyscf_ipu.base.host.disk_cache import kept_in
from pyscf_ipu.base.host.temporaries import replacing

UNUSABLE = (OSError, RuntimeError, ValueError)
"""What a folder or a file raises that cannot be used: that costs time, not the run."""


def find(name: str, key: Mapping[str, object]) -> object:
    """The result that was kept, as JSON has it; None if there is none.

    Args:
        name: what it is.
        key: all that it depends on.
    """
    with suppress(*UNUSABLE):
        path = _place(name, key)
        if path is not None:
            digest, _, body = read_trusted(path).partition(b"\n")
            if digest == _digest(key, body):
                return json.loads(body)
    return None


def keep(name: str, key: Mapping[str, object], result: object) -> None:
    """Keep a result, for `find`."""
    with suppress(*UNUSABLE):
        path = _place(name, key)
        if path is not None:
            body = json.dumps(result).encode()
            with replacing(path, PRIVATE_FILE) as file:
                file.write(_digest(key, body) + b"\n" + body)


def _place(name: str, key: Mapping[str, object]) -> Path | None:
    """The file of a result; None if nothing is kept."""
    folder = kept_in()
    return None if folder is None else checked_folder(folder) / f"{name}-{_digest(key).decode()}"


def _digest(key: Mapping[str, object], body: bytes = b"") -> bytes:
    text = json.dumps(key, sort_keys=True).encode()
    return hashlib.sha256(hashlib.sha256(text).digest() + body).hexdigest()[:40].encode()
