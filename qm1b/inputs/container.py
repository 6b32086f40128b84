"""Inputs as streams of bytes: plain files, compressed ones, and tar archives.

Nothing is unpacked to the disk. Compression and archives are detected from their first bytes,
because names can be wrong.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from pyscf_ipu.molecule.files.opening import DAMAGE, PACKED, Bytes, as_text, encoding_of, unpacked
from qm1b.errors import UserError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD_BYTES = 1 << 16
"""Bytes of a member that are read ahead to detect its format."""

MEMBER_SUFFIXES = tuple(".smi .smiles .txt .csv .tsv .sdf .sd .mol .xyz .extxyz".split())
"""Members of an archive with other endings are skipped: licences, papers, folders."""

_DAMAGE = (*DAMAGE, tarfile.TarError)

_NOT_READ = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; save it as CSV, or pack it as .tar.gz",
    b"\x28\xb5\x2f\xfd": "packed with zstd; pack it with gzip",
    b"7z\xbc\xaf": "a 7z archive; pack it as .tar.gz",
    b"PAR1": "a Parquet file; save it as CSV",
    b"\x89HDF": "an HDF5 file; save its SMILES as CSV",
}


class Member(NamedTuple):
    """One file of an input: its name, its first bytes, and all of its bytes as a stream."""

    name: str
    head: bytes
    stream: io.BufferedReader


class Source:
    """An open input, whose `members` can be read once."""

    def __init__(self, path: Path) -> None:
        """Open a file.

        Raises:
            UserError: it is missing, not a regular file, not readable, or of an unsupported kind.
        """
        self.path = path
        self.skipped: list[str] = []
        self._digest = hashlib.sha256()
        if not path.is_file():
            what = "is not a regular file (pipe into `-`)" if path.exists() else "does not exist"
            what = "is a folder" if path.is_dir() else what
            raise UserError(f"input {path} {what}; give a file of molecules, such as a .smi file")
        try:
            self._file = open(path, "rb")  # noqa: SIM115
        except OSError as error:
            raise self._damaged(error) from None
        start = self._file.read(4)
        self._file.seek(0)
        if start in _NOT_READ:
            raise UserError(f"input {path} is {_NOT_READ[start]}")
        self._stream = unpacked(self._file, start)
        names = path.name.lower()
        by_name = names.endswith((".tar", ".tgz", ".tbz2", ".txz")) or ".tar." in names
        self.head = self._read_head(self._stream)
        """The first bytes, unpacked."""
        self.is_archive = self.head[257:262] == b"ustar" or by_name

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def sha256(self) -> str:
        """Hash of what has been read so far: the unpacked bytes, in an archive the names too."""
        return self._digest.hexdigest()

    def members(self) -> Iterator[Member]:
        """The file itself, or the files of an archive in its order.

        Raises:
            UserError: the file is damaged, or an archive without any file of molecules.
        """
        if not self.is_archive:
            yield self._member(self.path.name, self.head, self._stream)
            return
        whole = _Joined(self, self.head, self._stream)
        count = 0
        try:
            stream = io.BufferedReader(whole, HEAD_BYTES)
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as archive:
                for info in archive:
                    content = archive.extractfile(info) if info.isreg() else None
                    if content is None or not _is_molecules(info.name):
                        self.skipped += [info.name] if info.isreg() else []
                        continue
                    count += 1
                    self._digest.update(info.name.encode("utf-8", errors="replace") + b"\0")
                    yield self._unpacked_member(info.name, cast(Bytes, content))
            while whole.read(1 << 20):  # to the end, where gzip keeps its checksum
                pass
        except _DAMAGE as error:
            raise self._damaged(error) from None
        if not count:
            endings = " ".join(MEMBER_SUFFIXES)
            raise UserError(
                f"archive {self.path} holds no file of molecules; pack files whose names end in "
                f"one of {endings}"
            )

    def _unpacked_member(self, name: str, stream: Bytes) -> Member:
        start = stream.read(4) or b""
        content = unpacked(_Joined(self, start, stream), start)
        return self._member(name, self._read_head(content), content)

    def _member(self, name: str, head: bytes, rest: Bytes) -> Member:
        stream = _Joined(self, head, rest, seen=self._digest.update)
        return Member(name, head, io.BufferedReader(stream, HEAD_BYTES))

    def _read_head(self, stream: Bytes) -> bytes:
        """Up to HEAD_BYTES, however few the stream returns at a time."""
        parts = b""
        try:
            while len(parts) < HEAD_BYTES and (part := stream.read(HEAD_BYTES - len(parts))):
                parts += part
        except _DAMAGE as error:
            raise self._damaged(error) from None
        return parts

    def _damaged(self, error: Exception) -> UserError:
        return UserError(f"input {self.path} cannot be read ({error}); copy it again")


class _Header(tarfile.TarInfo):
    """Refuses names and attributes of a member that would fill the memory."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type not in tarfile.SUPPORTED_TYPES and self.size > HEAD_BYTES:
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        return super()._proc_member(archive)  # type: ignore[misc]


class _Joined(io.RawIOBase):
    """Bytes that were read ahead, then the rest of their stream. `seen` is called with them all."""

    def __init__(
        self,
        source: Source,
        head: bytes,
        stream: Bytes,
        seen: Callable[[bytes], None] = lambda data: None,
    ) -> None:
        self._source = source
        self._head = head
        self._stream = stream
        self._seen = seen

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        room = memoryview(buffer)
        if self._head:
            data, self._head = self._head[: len(room)], self._head[len(room) :]
        else:
            try:
                data = self._stream.read(len(room)) or b""
            except _DAMAGE as error:
                raise self._source._damaged(error) from None
        self._seen(data)
        room[: len(data)] = data
        return len(data)


def decoded(member: Member) -> io.TextIOWrapper:
    """A member as text whose lines end with \\n; bytes that are not text become U+FFFD."""
    return as_text(member.stream, member.head)


def head_text(head: bytes) -> str:
    """The beginning of a member as text."""
    text = head.decode(encoding_of(head), errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_molecules(name: str) -> bool:
    """Whether a member is to be read, by its name; macOS adds files named ._x."""
    base = name.rsplit("/", 1)[-1].lower()
    for packed in PACKED:
        base = base.removesuffix(packed)
    return not base.startswith(".") and base.endswith(MEMBER_SUFFIXES)
