"""XYZ and extended XYZ, plain or `.gz`: positions in Angstrom, the target in the comment line.

Atoms are read by qm1b's reader, which is some five times as fast as ASE's. One quick pass finds
where frames begin, so that any stretch of them can be read by itself; a packed file is unpacked
into memory for it, or beyond 256 MiB into a temporary file without a name.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import re
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from pyscf_ipu.units import BOHR_TO_ANGSTROM
from qm1b.inputs import xyz

from ..errors import UserError
from ..samples import Sample, Samples
from ..targets import Target
from .base import Reasons, Source, digest, kept
from .identity import molecule_of
from .lookup import Lookup, lookup

PART_FRAMES = 4096
IN_MEMORY_BYTES = 1 << 28

ENDINGS = (".extxyz", ".extxyz.gz", ".xyz", ".xyz.gz")

_PAIR = re.compile(r"""([^\s="']+)\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*'|\{[^}]*\}|\S+)""")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class XyzSource(Source):
    """Frames of a file. `target` None: all of them, for a prediction.

    The key and unit of the target are those of the first frame (`lookup`). Frames without the key,
    periodic ones and those whose target is not finite are left out and counted.
    """

    def __init__(
        self, path: Path, target: Target | None, key: str | None = None, unit: str | None = None
    ) -> None:
        super().__init__(path)
        self._unpacked: IO[bytes] | None = None
        if path.suffix == ".gz":
            self._unpacked = _unpack(path)
            weakref.finalize(self, self._unpacked.close)
        self._starts, self._n_frames = self._index()
        self._lookup: Lookup | None = None
        if target is not None:
            first = comment_of(next(self._frames(0)).split("\n", 2)[1])
            self._lookup = lookup(target, first, key, unit, str(path))

    def _index(self) -> tuple[list[int], int]:
        """Where every PART_FRAMES-th frame begins and the last one ends, and how many there are."""
        starts, n_frames, at = [], 0, 0
        with self._opened() as stream:
            while line := stream.readline():
                if line.strip():
                    if n_frames % PART_FRAMES == 0:
                        starts.append(at)
                    n_frames += 1
                    rest = list(itertools.islice(stream, self._count(line, n_frames) + 1))
                    if len(rest) != int(line) + 1:
                        raise UserError(f"{self.path} ends within frame {n_frames}; get it again.")
                    at += sum(map(len, rest))
                at += len(line)
        if not n_frames:
            raise UserError(f"{self.path} is empty; give a file with frames.")
        return [*starts, at], n_frames

    @cached_property
    def sizes(self) -> list[int]:
        """Frames of each part: PART_FRAMES, fewer in the last."""
        starts = range(0, self._n_frames, PART_FRAMES)
        return [min(PART_FRAMES, self._n_frames - start) for start in starts]

    @property
    def units(self) -> dict[str, str]:
        """Of the positions and of the keys that give the target."""
        return {"positions": "angstrom"} | (self._lookup.units if self._lookup else {})

    def fingerprint(self) -> str:
        """See `digest`: of the file as it lies there, packed or not."""
        return digest(self.path)

    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """See `Source.read_part`."""
        first = number * PART_FRAMES + 1
        rows: list[Sample] = []
        molecules: list[str] = []
        reasons = Reasons()
        for i, block in enumerate(self._frames(number), first):
            comment = comment_of(block.split("\n", 2)[1])
            why = self._unfit(comment)
            if why:
                reasons[why] += 1
                continue
            rows.append(self._row(block, comment, i))
            # A prediction divides nothing, and bonds take longer than reading.
            molecules.append(molecule_of(rows[-1]) if self._lookup else rows[-1].smiles)
        samples, others = kept(Samples.of(rows, molecules), {}, self._lookup is not None)
        return samples, reasons + others

    def _unfit(self, comment: dict[str, str]) -> str:
        """Why a frame is left out; '' if it is not."""
        periodic = comment.get("pbc", "T T T" if "Lattice" in comment else "")
        if any(word[:1] in "Tt1" for word in periodic.replace(",", " ").split()):
            return "periodic"
        missing = self._lookup.missing(comment) if self._lookup else []
        return f"no {' and '.join(missing)}" if missing else ""

    def _row(self, block: str, comment: dict[str, str], frame: int) -> Sample:
        where = f"{self.path}, frame {frame}"
        try:
            found = xyz.parse(block)
        except xyz.Unreadable as error:
            raise UserError(f"{where}: {error}.") from None
        bohr = (found.positions_angstrom / BOHR_TO_ANGSTROM).astype(np.float32)
        value = self._lookup.value(comment, where) if self._lookup else float("nan")
        smiles = comment.get("smiles", comment.get("SMILES", ""))
        return Sample(found.numbers.astype(np.uint8), bohr, value, smiles, f"frame {frame}")

    def _frames(self, number: int) -> Iterator[str]:
        """The text of each frame of a part."""
        start, stop = self._starts[number : number + 2]
        with self._opened() as stream:
            stream.seek(start)
            data = stream.read(stop - start)
        try:
            lines = iter(io.StringIO(data.decode()))
        except UnicodeDecodeError as error:
            raise UserError(f"{self.path} is not text in UTF-8 ({error}).") from None
        for count in lines:
            if count.strip():
                rest = itertools.islice(lines, int(count) + 1)
                yield "\n".join([count.strip(), *(line.rstrip("\r\n") for line in rest)])

    def _count(self, line: bytes, frame: int) -> int:
        text = line.strip()
        if not text.isdigit():
            raise UserError(
                f"{self.path}, frame {frame}: {text[:40]!r} stands where the number of atoms "
                "should; give XYZ or extended XYZ."
            )
        return int(text)

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        if self._unpacked is not None:
            self._unpacked.seek(0)
            yield self._unpacked
            return
        try:
            stream = open(self.path, "rb")  # noqa: SIM115
        except OSError as error:
            raise UserError(f"{self.path} cannot be read ({error.strerror}).") from None
        with stream:
            yield stream


def comment_of(line: str) -> dict[str, str]:
    """The keys of a comment line and their values, without quotes and escapes."""
    return {key: _plain(value) for key, value in _PAIR.findall(line)}


def _plain(value: str) -> str:
    if value[0] == '"':
        text = _ESCAPE.sub(r"\1", value[1:-1])
        # How ASE and qm1b write what would be misread, such as the SMILES of hydrogen fluoride.
        return str(json.loads(text[6:])) if text.startswith("_JSON ") else text
    return value[1:-1] if value[0] in "'{" else value


def _unpack(path: Path) -> IO[bytes]:
    whole: Any = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115
    try:
        with gzip.open(path) as packed:
            shutil.copyfileobj(packed, whole, 1 << 20)
    except (OSError, EOFError, zlib.error) as error:
        whole.close()
        raise UserError(f"{path} cannot be unpacked ({error}); get it again.") from None
    return whole
