"""Files as text: packed or not, in any encoding that programs write, with any ends of lines."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from pyscf_ipu.base.errors import InvalidMolecule

PACKED = (".gz", ".bz2", ".xz")
"""Endings of compressed files."""

DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What reading a damaged file raises."""

MAX_LINE = 1 << 18
"""Characters of a line that are kept in memory, in every format; longer lines cannot be read."""

Bytes = io.BufferedIOBase | io.RawIOBase


@contextmanager
def opened(path: Path) -> Iterator[io.TextIOBase]:
    """A file as text, unpacked; lines end with \\n, and bytes that are not text become U+FFFD.

    Raises:
        FileNotFoundError: there is no such file.
        InvalidMolecule: it cannot be read or unpacked.
    """
    if not path.is_file():
        raise FileNotFoundError(f"file {path} does not exist or is not a file; check the path")
    try:
        with open(path, "rb") as file:
            stream = unpacked(file, file.peek(4)[:4])
            peeked = io.BufferedReader(cast(io.RawIOBase, stream))
            with as_text(peeked, peeked.peek(256)) as text:
                yield text
    except DAMAGE as error:
        raise InvalidMolecule(f"{path} cannot be read ({error}); copy it again") from error


def as_text(stream: Bytes, head: bytes) -> io.TextIOWrapper:
    """A stream that begins with `head` as text; see `opened`."""
    return io.TextIOWrapper(
        cast("IO[bytes]", stream), encoding=encoding_of(head), errors="replace", newline=None
    )


def unpacked(stream: Bytes, start: bytes) -> Bytes:
    """The content of a stream that begins with `start`: unpacked if it is packed."""
    file = cast("IO[bytes]", stream)
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file, mode="rb")
    if start.startswith(b"BZh"):
        return bz2.BZ2File(file, "rb")
    if start.startswith(b"\xfd7zX"):
        return lzma.LZMAFile(file, "rb")
    return stream


def encoding_of(head: bytes) -> str:
    """The encoding of a text by its first bytes: UTF-8, or the UTF-16 that Excel writes."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    text = head[:256]
    if len(text) >= 4:  # every other byte of Latin text is NUL
        for odd, name in ((1, "utf-16-le"), (0, "utf-16-be")):
            if text[odd::2].count(0) > 0.9 * len(text[odd::2]) and 0 not in text[1 - odd :: 2]:
                return name
    return "utf-8-sig"


def is_plain(head: bytes) -> bool:
    """Whether a file that begins so is UTF-8 without a mark, and not packed."""
    stream = io.BytesIO(head)
    marked = head.startswith(codecs.BOM_UTF8) or encoding_of(head) != "utf-8-sig"
    return not marked and unpacked(stream, head[:4]) is stream


class Truncated(str):
    """The beginning of a line that is longer than MAX_LINE."""


def bounded_lines(text: io.TextIOBase) -> Iterator[str]:
    """The lines of a text without their ends; of one longer than MAX_LINE, a `Truncated`."""
    while line := text.readline(MAX_LINE):
        if len(line) < MAX_LINE or line.endswith("\n"):
            yield line.removesuffix("\n")
            continue
        while (rest := text.readline(1 << 16)) and not rest.endswith("\n"):
            pass
        yield Truncated(line)


def whole_lines(text: io.TextIOBase) -> Iterator[str]:
    """The lines of a text with their ends; raises InvalidMolecule at one longer than MAX_LINE."""
    number = 0
    while line := text.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE and not line.endswith(("\n", "\r")):
            raise InvalidMolecule(f"line {number} has more than {MAX_LINE} characters")
        yield line
