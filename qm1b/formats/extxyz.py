"""Extended XYZ, as ASE reads it: positions in Angstrom, `energy` in eV, `dipole` in e*Angstrom.

Fields of atoms are columns; every other field of a row also stands in the comment line. Both have
names with units, and as many digits as it takes to come back bit for bit. Reading is ASE's; writing
is not, because ASE rounds positions to eight decimals.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from pyscf_ipu.molecule import SYMBOLS
from pyscf_ipu.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV

from ..batch import OFFSETS, Batch, Record, column, offsets_of, unit_name
from ..errors import UserError
from ..reading import Dataset
from ..schema import FIELDS, Field

BATCH_ROWS = 1024
ENDINGS = (".extxyz", ".extxyz.gz")
_OF_ATOMS = [f for f in FIELDS if f.ragged == "atom" and f.name not in ("numbers", "positions")]


def is_extxyz(path: Path) -> bool:
    """Whether a file's name says that it is extended XYZ."""
    return path.name.endswith(ENDINGS)


def manifest_path(path: Path) -> Path:
    """The manifest beside an extended XYZ file, which has no room for it."""
    return path.with_name(f"{path.name}.manifest.json")


def write(stream: IO[bytes], batches: Iterable[Batch], packed: bool) -> int:
    """Write rows one frame after another; `packed` for gzip. Returns how many there were."""
    # No file name and no time in the header: the same rows give the same bytes.
    out = gzip.GzipFile("", "wb", 6, stream, mtime=0) if packed else stream
    total = 0
    try:
        for batch in batches:
            out.write("".join(map(frame, batch.rows())).encode())
            total += len(batch)
    finally:
        if packed:
            out.close()
    return total


def frame(row: Record) -> str:
    """A row as a frame of the file."""
    positions = row["positions"].astype(np.float64) * BOHR_TO_ANGSTROM
    columns = [f for f in _OF_ATOMS if f.name in row]
    values: dict[str, Any] = {
        "Properties": ":".join(["species:S:1:pos:R:3", *(f"{unit_name(f)}:R:1" for f in columns)]),
        "pbc": np.array([False, False, False]),
        "energy": row["energy"] * HARTREE_TO_EV,
        "dipole": row["dipole"] * BOHR_TO_ANGSTROM,
    }
    values |= {unit_name(f): row[f.name] for f in FIELDS if _in_comment(f) and f.name in row}
    lines = [str(len(positions)), " ".join(f"{k}={_written(v)}" for k, v in values.items())]
    numbers = np.column_stack([positions, *(row[f.name] for f in columns)])
    for z, entries in zip(row["numbers"], numbers.tolist(), strict=True):
        lines.append(f"{SYMBOLS[z]:2} {' '.join(map(repr, entries))}")
    return "\n".join(lines) + "\n"


class ExtxyzFile(Dataset):
    """An extended XYZ file, read from the front; it has no length and no rows by number."""

    def __init__(self, path: Path, fields: Sequence[str] | None = None) -> None:
        super().__init__(path, fields)
        self.metadata = _manifest(manifest_path(path))

    def batches(self) -> Iterator[Batch]:
        """All rows in the order of the file."""
        try:
            from ase.io import read
        except ImportError:
            raise UserError(
                'extended XYZ is read by ASE, which is not installed: pip install "pyscf-ipu[ase]".'
            ) from None
        opened = gzip.open if self.path.suffix == ".gz" else open
        try:
            with opened(self.path, "rt") as stream:
                frames = _frames(stream)
                while text := "".join(islice(frames, BATCH_ROWS)):
                    found: Any = read(io.StringIO(text), ":", format="extxyz")
                    yield self._only(_batch([record(atoms) for atoms in found]))
        except (OSError, EOFError, ValueError, KeyError, IndexError) as error:
            raise UserError(f"{self.path} is damaged ({error}); export it again.") from None


def _manifest(path: Path) -> dict[str, Any]:
    """The manifest beside a file; empty if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        what = str(error)
    else:
        if isinstance(found, dict):
            return found
        what = "not a manifest"
    raise UserError(
        f"{path} is damaged ({what}); export again, or delete it: the rows can be read without it."
    )


def _frames(stream: Iterable[str]) -> Iterator[str]:
    """The text of each frame: ASE's own streaming reader takes the first digit of the number of
    atoms for all of it (3.29), and its other one wants to see the whole file."""
    source = iter(stream)
    for first in source:
        if not first.strip():
            continue  # between two files that were joined
        lines = [first, *islice(source, int(first) + 1)]
        if len(lines) != int(first) + 2:
            raise EOFError("its last frame is cut off")
        yield "".join(lines)


def record(atoms: Any) -> Record:
    """The fields that a frame holds; energy and dipole moment from ASE's own, if need be."""
    info = dict(atoms.info)
    bohr = atoms.get_positions() / BOHR_TO_ANGSTROM
    found: Record = {"numbers": atoms.numbers, "positions": bohr.astype(np.float32)}
    for f in FIELDS:
        if _in_comment(f) and unit_name(f) in info:
            found[f.name] = _read(f, info[unit_name(f)])
    for f in _OF_ATOMS:
        if unit_name(f) in atoms.arrays:
            found[f.name] = atoms.arrays[unit_name(f)]
    results = atoms.calc.results if atoms.calc else {}
    if "energy" not in found and "energy" in results:
        found["energy"] = results["energy"] / HARTREE_TO_EV
    if "dipole" not in found and "dipole" in results:
        found["dipole"] = np.asarray(results["dipole"]) / BOHR_TO_ANGSTROM
    return found


def _batch(rows: list[Record]) -> Batch:
    """Rows as columns; only the fields that all of them have."""
    columns: dict[str, np.ndarray] = {}
    for f in FIELDS:
        if f.name in OFFSETS or any(f.name not in row for row in rows):
            continue
        values = [row[f.name] for row in rows]
        if f.ragged:
            lengths = [len(v) for v in values]
            columns[f"{f.ragged}_offset"] = offsets_of(lengths)
            values = np.concatenate(values)
        columns[f.name] = column(f, values, len(rows))
    return Batch({f.name: columns[f.name] for f in FIELDS if f.name in columns})


def _in_comment(field: Field) -> bool:
    return field.name not in OFFSETS and field.ragged != "atom"


def _written(value: Any) -> str:
    """A value in the comment line. `repr` gives as many digits as tell two numbers apart."""
    if isinstance(value, str):
        return _quoted(f"_JSON {json.dumps(value)}" if _misread(value) else value)
    if isinstance(value, np.ndarray):
        return _quoted(" ".join(map(_written, value.tolist())) if value.size else "_JSON []")
    if isinstance(value, bool):
        return "T" if value else "F"
    return repr(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _misread(text: str) -> bool:
    """Whether ASE would take a text for something else: the SMILES of hydrogen fluoride, F, for a
    boolean, a status "nan" for a number, and "" for the beginning of what follows."""
    words = re.findall(r"[^\s,]+", text)
    return len(text.splitlines()) != 1 or text[:1] == "_" or all(map(_is_value, words))


def _is_value(word: str) -> bool:
    if word.lower() in ("t", "f", "true", "false"):
        return True
    try:
        float(word)
    except ValueError:
        return False
    return True


def _read(field: Field, value: Any) -> Any:
    """A value as ASE has parsed it, back to what the field is."""
    if field.dtype == "str":
        return str(value)
    return np.atleast_1d(value) if field.ragged or field.width > 1 else value
