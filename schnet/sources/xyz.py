"""XYZ and extended XYZ, plain or packed: positions in Angstrom, the target in the comment line,
forces in a column of the atoms.

`pyscf_ipu` reads the atoms, some five times as fast as ASE. One quick pass finds where frames
begin, so that any range of them can be read. For that, a file that is packed, or not in UTF-8, is
written as plain text into memory, or beyond 256 MiB into a temporary file without a name.
"""

import io
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.molecule.files.framing import Piece, frames
from pyscf_ipu.molecule.files.opening import is_plain, opened, whole_lines
from pyscf_ipu.molecule.files.stated import Refused
from pyscf_ipu.molecule.files.wrong_unit import in_words, mistaken_unit
from pyscf_ipu.molecule.files.xyz import Unreadable, comment_keys, frame_of
from qm1b.inputs.ids import of_comment
from schnet.errors import UserError
from schnet.samples.samples import Sample, Samples, of_charge, without_atoms
from schnet.samples.targets import Target
from schnet.sources.base import FITTED, Reasons, Source, kept
from schnet.sources.identity import molecule_of
from schnet.sources.lookup import Lookup, lookup

PART_FRAMES = 4096
IN_MEMORY_BYTES = 1 << 28
UNLIMITED = 1 << 31
"""Atoms of a frame: the network has no limit of its own."""


class XyzSource(Source):
    """Frames of a file; without a target all of them, for a prediction.

    The first frame decides about the key and unit of the target (`lookup`). Frames without the key,
    those that `pyscf_ipu` refuses (periodic, open shells) and those whose target or forces are not
    finite are dropped and counted; in a prediction they stay, with the reason. Frames of free atoms
    are skipped and do not count. Of a file that holds a torn frame or something else than frames,
    nothing is trained on; a prediction has a row there that says so.
    """

    def __init__(
        self, path: Path, target: Target | None, key: str | None = None, unit: str | None = None
    ) -> None:
        super().__init__(path)
        self._unpacked: IO[bytes] | None = None
        with self._opened() as stream:
            if not is_plain(stream.read(256)):
                self._unpacked = _as_plain_text(path)
                weakref.finalize(self, self._unpacked.close)
        self._starts, self._n_frames, trouble, n_good = self._index()
        if trouble and (target is not None or not n_good):
            raise UserError(f"{path}, {trouble}")
        self._lookup: Lookup | None = None
        if target is not None:
            first = comment_keys(next(self._frames(0)).comment)
            self._lookup = lookup(target, first, key, unit=unit, where=str(path))

    def _index(self) -> tuple[list[tuple[int, int]], int, str, int]:
        """The bytes and lines before every PART_FRAMES-th frame, how many frames there are, what is
        wrong with the first bad one, and how many are good."""
        starts, n_frames, trouble, n_good = [], 0, "", 0
        with self._opened() as stream:
            # Latin-1 has a character for each byte, and "" leaves line ends as they are.
            text = io.TextIOWrapper(stream, "latin-1", newline="")  # type: ignore[arg-type]
            for piece in frames(self._whole(text), max_atoms=UNLIMITED):
                if n_frames % PART_FRAMES == 0:
                    starts.append((piece.at, piece.line - 1))
                n_frames += 1
                n_good += not piece.trouble
                if piece.trouble and not trouble:
                    shown = str(piece.trouble).encode("latin-1").decode(errors="replace")
                    trouble = f"frame {n_frames}: {shown}"
            text.detach()
        if not n_frames:
            raise UserError(f"{self.path} is empty; give a file with frames")
        return starts, n_frames, trouble, n_good

    @cached_property
    def sizes(self) -> list[int]:
        """Frames of each part: PART_FRAMES, or fewer in the last."""
        starts = range(0, self._n_frames, PART_FRAMES)
        return [min(PART_FRAMES, self._n_frames - start) for start in starts]

    @property
    def units(self) -> dict[str, str]:
        """Units of the positions and of the keys that give the target."""
        return {"positions": "angstrom"} | (self._lookup.units if self._lookup else {})

    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """Read one part (`Source.read_part`)."""
        first = number * PART_FRAMES + 1
        rows: list[Sample] = []
        molecules: list[str] = []
        reasons, fitted = Reasons(), Counter[bool]()
        for i, piece in enumerate(self._frames(number), first):
            row = self._row(piece, i)
            if self._lookup and row.reason:
                reasons[row.reason] += 1
                continue
            rows.append(row)
            comment = piece.comment
            fitted["jk=" in comment and comment_keys(comment).get("jk") == FITTED] += 1
            # A prediction splits nothing, and finding bonds takes longer than reading.
            molecules.append(molecule_of(row) if self._lookup else row.smiles)
        self._fitted[number] = fitted
        samples, others = kept(Samples.of(rows, molecules), {}, self._lookup is not None)
        return samples, reasons + others

    def _row(self, piece: Piece, frame: int) -> Sample:
        """A frame, or the reason why there is none.

        An atom that cannot be read damages data to train on, but only its own prediction.
        """
        comment = comment_keys(piece.comment)
        smiles = comment.get("smiles", comment.get("SMILES", ""))
        key, where = f"frame {frame}", f"{self.path}, frame {frame}"
        name = "" if self._lookup else of_comment(piece.comment, None)
        missing = self._lookup.missing(comment) if self._lookup else []
        try:
            if piece.trouble:
                raise piece.trouble
            molecule = frame_of(
                piece.comment, piece.atoms, self._lookup.forces_column if self._lookup else None
            )
            molecule.check()
            doubt = of_charge(molecule.charge or 0)  # a contradiction is refused
        except Refused as error:
            if isinstance(error, Unreadable) and self._lookup and not missing:
                raise UserError(f"{where}: {error}") from None
            why = error.short if self._lookup else str(error)
            return without_atoms(smiles, key, why, name=name)
        if missing:
            return without_atoms(smiles, key, f"no {' and '.join(missing)}")
        bohr = (molecule.positions_angstrom / BOHR_TO_ANGSTROM).astype(np.float32)
        row = Sample(molecule.numbers.astype(np.uint8), bohr, float("nan"), smiles=smiles, key=key)
        if self._lookup is None:
            unit = mistaken_unit(molecule.numbers, molecule.positions_angstrom)
            doubts = (doubt, in_words(unit) if unit else "")
            return row._replace(id=name, doubt="; ".join(filter(None, doubts)))
        forces = self._lookup.atomic_forces(molecule.vectors)
        return row._replace(target=self._lookup.value(comment, where), forces=forces)

    def _frames(self, number: int) -> Iterator[Piece]:
        """The frames of a part, without those of free atoms."""
        start, line = self._starts[number]
        stop = self._starts[number + 1][0] if number + 1 < len(self._starts) else None
        with self._opened() as stream:
            stream.seek(start)
            data = stream.read(-1 if stop is None else stop - start)
        text = io.StringIO(data.decode(errors="replace"), newline=None)
        return frames(text, line + 1, UNLIMITED)

    def _whole(self, text: io.TextIOBase) -> Iterator[str]:
        """The lines of the file; raises UserError at one that is too long."""
        try:
            yield from whole_lines(text)
        except InvalidMolecule as error:
            raise UserError(f"{self.path}: {error}") from None

    def _opened(self) -> AbstractContextManager[IO[bytes]]:
        if self._unpacked is not None:
            self._unpacked.seek(0)
            return nullcontext(self._unpacked)
        try:
            return open(self.path, "rb")
        except OSError as error:
            raise UserError(f"{self.path} cannot be read ({error.strerror})") from None


def _as_plain_text(path: Path) -> IO[bytes]:
    """A file as UTF-8 without a mark, unpacked."""
    whole = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115
    try:
        with opened(path) as text:
            while part := text.read(1 << 20):
                whole.write(part.encode(errors="replace"))
    except InvalidMolecule as error:
        whole.close()
        raise UserError(str(error)) from None
    return whole
