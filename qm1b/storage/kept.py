"""Small results that take seconds and never change, kept on disk beside the compiled programs.

A file's name is a hash of what the result depends on; one that was damaged, renamed or copied is
not used.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.host.cache_folder import (
    PRIVATE_FILE,
    checked_folder,
    read_trusted,
    with_checksum,
    without_checksum,
)
from pyscf_ipu.base.host.disk_cache import kept_in
from pyscf_ipu.base.host.temporaries import replacing

UNUSABLE = (OSError, RuntimeError, UsageError)
"""What a folder raises that cannot be used, is nobody's home, or is shared in unknown words: here
that costs time alone, and the programs in it say so."""


def find(name: str, key: Mapping[str, object]) -> object:
    """The result that was kept, as JSON has it; None if there is none.

    Args:
        name: what it is.
        key: all that it depends on.
    """
    body, whole_key = None, _bytes(key)
    with suppress(*UNUSABLE):
        if path := _place(name, whole_key):
            body = without_checksum(whole_key, read_trusted(path))
    return None if body is None else json.loads(body)


def keep(name: str, key: Mapping[str, object], result: object) -> None:
    """Keep a result, for `find`."""
    whole_key = _bytes(key)
    content = with_checksum(whole_key, json.dumps(result).encode())
    with suppress(*UNUSABLE):
        if path := _place(name, whole_key):
            with replacing(path, PRIVATE_FILE) as file:
                file.write(content)


def _place(name: str, key: bytes) -> Path | None:
    """The file of a result; None if nothing is kept."""
    folder, digest = kept_in(), hashlib.sha256(key).hexdigest()
    return None if folder is None else checked_folder(folder) / f"{name}-{digest[:40]}"


def _bytes(key: Mapping[str, object]) -> bytes:
    return json.dumps(key, sort_keys=True).encode()
