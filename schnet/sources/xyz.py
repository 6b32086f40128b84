"""XYZ and extended XYZ, plain or `.gz`: positions in Angstrom, the target in the comment line,
forces in a column of the atoms.

qm1b's reader reads the atoms, some five times as fast as ASE's. One quick pass finds where frames
begin, so that any range of them can be read. For that, a `.gz` file is unpacked into memory, or
beyond 256 MiB into a temporary file without a name.
"""

import gzip
import io
import itertools
import shutil
import tempfile
import weakref
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np

from pyscf_ipu.molecule.stated import Refused
from pyscf_ipu.molecule.xyz import Unreadable, comment_keys, is_free_atom, parse_frame
from pyscf_ipu.units import BOHR_TO_ANGSTROM
from schnet.errors import UserError
from schnet.samples.samples import Sample, Samples, without_atoms
from schnet.samples.targets import Target
from schnet.sources.base import FITTED, Reasons, Source, kept
from schnet.sources.identity import molecule_of
from schnet.sources.lookup import Lookup, lookup

PART_FRAMES = 4096
IN_MEMORY_BYTES = 1 << 28

ENDINGS = (".extxyz", ".extxyz.gz", ".xyz", ".xyz.gz")


class XyzSource(Source):
    """Frames of a file; without a target all of them, for a prediction.

    The first frame decides about the key and unit of the target (`lookup`). Frames without the key,
    those that `pyscf_ipu` refuses (periodic, open shells) and those whose target or forces are not
    finite are dropped and counted; in a prediction they stay, with the reason. Frames of free atoms
    are skipped and do not count. Where a file breaks off or holds something else than frames,
    nothing is trained on it; a prediction ends there with one row that says so.
    """

    def __init__(
        self, path: Path, target: Target | None, key: str | None = None, unit: str | None = None
    ) -> None:
        super().__init__(path)
        self._unpacked: IO[bytes] | None = None
        if path.suffix == ".gz":
            self._unpacked = _unpack(path)
            weakref.finalize(self, self._unpacked.close)
        self._starts, self._n_frames, self._torn = self._index()
        if self._torn and (target is not None or not self._n_frames):
            raise UserError(f"{path}, {self._after_last}: {self._torn}")
        self._lookup: Lookup | None = None
        if target is not None:
            first = comment_keys(next(self._frames(0)).split("\n", 2)[1])
            self._lookup = lookup(target, first, key, unit=unit, where=str(path))

    def _index(self) -> tuple[list[int], int, str]:
        """Where every PART_FRAMES-th frame begins and the last one ends, how many there are, and
        why no more can be read, or ""."""
        starts, n_frames, at, torn = [], 0, 0, ""
        with self._opened() as stream:
            while line := stream.readline():
                if line.strip():
                    if not line.strip().isdigit():
                        shown = line.strip()[:40].decode(errors="replace")
                        torn = f"{shown!r} is not a number of atoms; give XYZ or extended XYZ"
                        break
                    rest = list(itertools.islice(stream, int(line) + 1))
                    if len(rest) != int(line) + 1:
                        torn = "the file ends within it; copy or download it again"
                        break
                    if not is_free_atom(rest[0].decode(errors="replace")):
                        if n_frames % PART_FRAMES == 0:
                            starts.append(at)
                        n_frames += 1
                    at += sum(map(len, rest))
                at += len(line)
        if not n_frames and not torn:
            raise UserError(f"{self.path} is empty; give a file with frames")
        return [*starts, at], n_frames, torn

    @property
    def _after_last(self) -> str:
        """The name of what follows the last whole frame."""
        return f"frame {self._n_frames + 1}"

    @cached_property
    def sizes(self) -> list[int]:
        """Frames of each part: PART_FRAMES, or fewer in the last, and there a row for the rest of a
        torn file."""
        starts = range(0, self._n_frames, PART_FRAMES)
        found = [min(PART_FRAMES, self._n_frames - start) for start in starts]
        found[-1] += bool(self._torn)
        return found

    @property
    def units(self) -> dict[str, str]:
        """Units of the positions and of the keys that give the target."""
        return {"positions": "angstrom"} | (self._lookup.units if self._lookup else {})

    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """See `Source.read_part`."""
        first = number * PART_FRAMES + 1
        rows: list[Sample] = []
        molecules: list[str] = []
        reasons, fitted = Reasons(), Counter[bool]()
        for i, block in enumerate(self._frames(number), first):
            row = self._row(block, i)
            if self._lookup and row.reason:
                reasons[row.reason] += 1
                continue
            rows.append(row)
            comment = block.split("\n", 2)[1]
            fitted["jk=" in comment and comment_keys(comment).get("jk") == FITTED] += 1
            # A prediction splits nothing, and finding bonds takes longer than reading.
            molecules.append(molecule_of(row) if self._lookup else row.smiles)
        if self._torn and number == len(self.sizes) - 1:
            reason = f"{self._torn}; nothing after it was read"
            rows.append(without_atoms("", self._after_last, reason))
            molecules.append("")
        self._fitted[number] = fitted
        samples, others = kept(Samples.of(rows, molecules), {}, self._lookup is not None)
        return samples, reasons + others

    def _row(self, block: str, frame: int) -> Sample:
        """A frame, or the reason why there is none.

        An atom that cannot be read damages data to train on, but only its own prediction.
        """
        comment = comment_keys(block.split("\n", 2)[1])
        smiles = comment.get("smiles", comment.get("SMILES", ""))
        key, where = f"frame {frame}", f"{self.path}, frame {frame}"
        missing = self._lookup.missing(comment) if self._lookup else []
        try:
            found = parse_frame(block, self._lookup.forces_column if self._lookup else None)
            found.check()
            _ = found.charge  # a contradiction; the network does not know charges
        except Refused as error:
            return without_atoms(smiles, key, error.short if self._lookup else str(error))
        except Unreadable as error:
            if self._lookup and not missing:
                raise UserError(f"{where}: {error}") from None
            return without_atoms(smiles, key, str(error))
        if missing:
            return without_atoms(smiles, key, f"no {' and '.join(missing)}")
        bohr = (found.positions_angstrom / BOHR_TO_ANGSTROM).astype(np.float32)
        row = Sample(found.numbers.astype(np.uint8), bohr, float("nan"), smiles=smiles, key=key)
        if self._lookup is None:
            return row
        forces = self._lookup.atomic_forces(found.vectors)
        return row._replace(target=self._lookup.value(comment, where), forces=forces)

    def _frames(self, number: int) -> Iterator[str]:
        """The text of each frame of a part, without those of free atoms."""
        start, stop = self._starts[number : number + 2]
        with self._opened() as stream:
            stream.seek(start)
            data = stream.read(stop - start)
        try:
            lines = iter(io.StringIO(data.decode()))
        except UnicodeDecodeError as error:
            raise UserError(f"{self.path} is not UTF-8 text ({error}); save it as UTF-8") from None
        for count in lines:
            if count.strip():
                rest = list(itertools.islice(lines, int(count) + 1))
                if is_free_atom(rest[0]):
                    continue
                yield "\n".join([count.strip(), *(line.rstrip("\r\n") for line in rest)])

    def _opened(self) -> AbstractContextManager[IO[bytes]]:
        if self._unpacked is not None:
            self._unpacked.seek(0)
            return nullcontext(self._unpacked)
        try:
            return open(self.path, "rb")
        except OSError as error:
            raise UserError(f"{self.path} cannot be read ({error.strerror})") from None


def _unpack(path: Path) -> IO[bytes]:
    whole = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115
    try:
        with gzip.open(path) as packed:
            shutil.copyfileobj(packed, whole, 1 << 20)
    except (OSError, EOFError, zlib.error) as error:
        whole.close()
        raise UserError(f"{path} cannot be unpacked ({error}); copy or download it again") from None
    return whole
