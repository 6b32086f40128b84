"""A checksum inside each shard: one file, so no kill can come between the data and its checksum.

HDF5 leaves a "user block" at the beginning of a file to its writer. Ours holds one line of text,
the SHA-256 of all bytes behind the block, and zeros; any HDF5 program reads the file as usual. A
flipped bit anywhere, in the block too, and a file cut or lengthened anywhere, is noticed.
"""

import hashlib
from pathlib import Path

from qm1b.errors import UserError
from qm1b.storage.files import refuse_stream
from qm1b.storage.foreign_hdf5 import NotOurs, check_heaps

BLOCK = 512
"""Bytes of the user block, the least that HDF5 allows."""

_HDF5 = b"\x89HDF\r\n\x1a\n"
_TEXT = "qm1b shard; SHA-256 of the bytes from {block} on: {digest}\n"


class Damaged(UserError):
    """A shard that is not what was written."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(
            f"shard {path} is damaged ({what}); run the same qm1b generate again to recompute it"
        )
        self.path, self.what = path, what


def sealed(image: bytes) -> bytes:
    """An HDF5 file image with an empty user block of BLOCK bytes -> the same with the checksum."""
    body = memoryview(image)[BLOCK:]
    return b"".join([_block(body), body])


def check(path: Path) -> None:
    """Read a shard and compare it with its checksum.

    Raises:
        Damaged: it was cut, lengthened or changed.
        UserError: it cannot be read at all, or never had a checksum.
    """
    try:
        refuse_stream(path)
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(
            f"shard {path} is gone: somebody deleted or moved it; put it back, or run its qm1b "
            "generate again, which computes it again"
        ) from None
    except OSError as error:
        raise UserError(
            f"shard {path} cannot be read ({error.strerror}); repair the disk or its permissions, "
            "or delete the shard to have it computed again"
        ) from None
    if data.startswith(_HDF5):  # no user block, and no flipped bit makes one into this
        raise UserError(
            f"shard {path} has no checksum: an older version wrote it; use it with that version, "
            "or generate the dataset again"
        )
    view = memoryview(data)
    if len(view) <= BLOCK:
        raise Damaged(path, f"{len(view)} bytes")
    if view[:BLOCK] != _block(view[BLOCK:]):
        raise Damaged(path, "its checksum does not match")
    try:
        check_heaps(data, BLOCK)
    except NotOurs as error:
        raise UserError(
            f"shard {path} has the right checksum, but was made by another program ({error}); "
            "delete it, or ask whoever made it for the shard of qm1b"
        ) from None


def _block(body: memoryview) -> bytes:
    text = _TEXT.format(block=BLOCK, digest=hashlib.sha256(body).hexdigest())
    return text.encode().ljust(BLOCK, b"\0")
