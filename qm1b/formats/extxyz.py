"""Extended XYZ, in the words of the programs that train on it, and every field of ours.

ASE, NequIP and fairchem read `energy` (eV), `forces` (eV/Angstrom) and `dipole` (e*Angstrom) as the
results of a calculation, fairchem also `charge` and `spin`. MACE reads REF_energy, REF_forces,
REF_charges (e), REF_dipole (Debye), total_charge and total_spin, and the energies of free atoms
from frames that are marked as such, which come first. Our readers skip these.

Our fields have names with units, and enough digits to restore every bit: those of atoms as columns,
the others in the comment line. ASE reads the file but does not write it, because it would round
positions to eight decimals.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import numpy as np

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.base.units import (
    BOHR_TO_ANGSTROM,
    E_BOHR_TO_DEBYE,
    FORCE_TO_EV_PER_ANGSTROM,
    HARTREE_TO_EV,
)
from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS, SYMBOLS
from pyscf_ipu.molecule.files.framing import MAX_ATOMS
from pyscf_ipu.molecule.files.opening import whole_lines
from pyscf_ipu.molecule.files.xyz import FREE_ATOM, is_free_atom
from qm1b.errors import UserError
from qm1b.reference.free_atoms import multiplicity
from qm1b.rows.batch import OFFSETS, Batch, Record, batch_of, unit_name
from qm1b.rows.dataset import Dataset
from qm1b.rows.schema import FIELDS, Field, Json

if TYPE_CHECKING:
    from ase import Atoms

BATCH_ROWS, BATCH_CHARACTERS = 1024, 1 << 24
ENDINGS = (".extxyz", ".extxyz.gz")
_DAMAGE = (OSError, EOFError, zlib.error, ArithmeticError, AttributeError, LookupError)
_DAMAGE += (TypeError, ValueError, RuntimeError)
"""What gzip, ASE and NumPy raise for damaged text."""
_OF_ATOMS = [f for f in FIELDS if f.ragged == "atom" and f.name not in ("numbers", "positions")]


def is_extxyz(path: Path) -> bool:
    """Whether a file is extended XYZ, by its name."""
    return path.name.endswith(ENDINGS)


def manifest_path(path: Path) -> Path:
    """The manifest beside an extended XYZ file, which cannot hold it."""
    return path.with_name(f"{path.name}.manifest.json")


def write(stream: IO[bytes], batches: Iterable[Batch], packed: bool, first: str = "") -> int:
    """Write `first` and rows as frames, with gzip if `packed`; returns the number of rows."""
    # Without file name and time in the header, the same rows give the same bytes.
    total = 0
    with gzip.GzipFile("", "wb", 6, stream, mtime=0) if packed else nullcontext(stream) as out:
        out.write(first.encode())
        for batch in batches:
            out.write("".join(map(frame, batch.rows())).encode())
            total += len(batch)
    return total


def free_atoms(energies: Mapping[str, float], forces: bool) -> str:
    """The frames of free atoms.

    Args:
        energies: in Hartree, by symbol.
        forces: whether the rows have forces; those on a free atom are zero.
    """
    zero = np.zeros((1, 3))
    still = {"forces": zero} if forces else {}
    frames = []
    for symbol, energy in energies.items():
        atom: Record = {"numbers": np.array([ATOMIC_NUMBERS[symbol]]), "positions": zero}
        atom |= {"energy": energy, "dipole": zero[0], "charge": 0, "mulliken_charges": zero[0, :1]}
        atom["multiplicity"] = multiplicity(ATOMIC_NUMBERS[symbol])
        frames.append(frame(atom | still, FREE_ATOM))
    return "".join(frames)


def frame(row: Record, config_type: str = "Default") -> str:
    """A row as a frame of the file."""
    positions = row["positions"].astype(np.float64) * BOHR_TO_ANGSTROM
    columns = {_property(f): row[f.name] for f in _OF_ATOMS if f.name in row}
    if "forces" in row:
        columns["forces:R:3"] = columns["REF_forces:R:3"] = row["forces"] * FORCE_TO_EV_PER_ANGSTROM
    columns["REF_charges:R:1"] = row["mulliken_charges"]
    energy, charge = row["energy"] * HARTREE_TO_EV, row["charge"]
    spin = row.get("multiplicity", 1)  # 2S + 1, as the readers of both names take it
    values: dict[str, object] = {
        "Properties": ":".join(["species:S:1:pos:R:3", *columns]),
        "pbc": np.array([False, False, False]),
        "config_type": config_type,
        "energy": energy,
        "REF_energy": energy,
        "dipole": row["dipole"] * BOHR_TO_ANGSTROM,
        "REF_dipole": row["dipole"] * E_BOHR_TO_DEBYE,
        "charge": charge,
        "total_charge": charge,
        "spin": spin,
        "total_spin": spin,
    }
    values |= {unit_name(f): row[f.name] for f in FIELDS if _in_comment(f) and f.name in row}
    lines = [str(len(positions)), " ".join(f"{k}={_written(v)}" for k, v in values.items())]
    parts = [each.reshape(len(positions), -1).tolist() for each in (positions, *columns.values())]
    for z, *entries in zip(row["numbers"], *parts, strict=True):
        lines.append(f"{SYMBOLS[z]:2} {' '.join(map(repr, chain.from_iterable(entries)))}")
    return "\n".join(lines) + "\n"


class ExtxyzFile(Dataset):
    """An extended XYZ file. It is read from the beginning: no length, no rows by number."""

    def __init__(self, path: Path, fields: Sequence[str] | None = None) -> None:
        super().__init__(path, fields)
        self.metadata = _manifest(manifest_path(path))

    def batches(self) -> Iterator[Batch]:
        """All rows in the order of the file."""
        try:
            from ase.io import read
        except ImportError:
            raise MissingPackage(
                f"reading extended XYZ needs ASE: run {how_to_install('ase')}"
            ) from None
        opened = gzip.open if self.path.suffix == ".gz" else open
        try:
            with opened(self.path, "rt") as stream:
                for text in _joined(_frames(stream)):
                    frames = cast("list[Atoms]", read(io.StringIO(text), ":", format="extxyz"))
                    yield self._only(_batch([record(atoms) for atoms in frames]))
        except _DAMAGE as error:
            what = " ".join(str(error).split()) or type(error).__name__
            raise UserError(f"{self.path} is damaged ({what}); export it again") from None


def _manifest(path: Path) -> Json:
    """The manifest beside a file; empty if there is none."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(manifest, dict):
            raise ValueError("not a manifest")
        return manifest
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"{path} is damaged ({error}); export again, or delete it: the rows can be read "
            "without it"
        ) from None


def _frames(stream: io.TextIOBase) -> Iterator[str]:
    """The text of each frame but those of free atoms.

    ASE's own streaming reader (3.29) reads only the first digit of the number of atoms, and its
    other reader needs the whole file.
    """
    source = whole_lines(stream)
    for first in source:
        if not first.strip():
            continue  # between two files that were joined
        if int(first) > MAX_ATOMS:
            raise ValueError(f"a frame of {first.strip()} atoms")
        lines = [first, *islice(source, int(first) + 1)]
        if len(lines) != int(first) + 2:
            raise EOFError("its last frame is cut off")
        if not is_free_atom(lines[1]):
            yield "".join(lines)


def _joined(frames: Iterable[str]) -> Iterator[str]:
    """Frames together: as many as one batch holds, or fewer large ones."""
    waiting, size = list[str](), 0
    for text in frames:
        waiting.append(text)
        size += len(text)
        if len(waiting) == BATCH_ROWS or size > BATCH_CHARACTERS:
            yield "".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield "".join(waiting)


def record(atoms: Atoms) -> Record:
    """The fields of a frame; without ours, energy, dipole moment and forces are ASE's own."""
    info = dict(atoms.info)
    bohr = atoms.get_positions() / BOHR_TO_ANGSTROM
    values: Record = {"numbers": atoms.numbers, "positions": bohr.astype(np.float32)}
    for f in FIELDS:
        if _in_comment(f) and (name := unit_name(f)) in info:
            value = np.atleast_1d(info[name]) if f.ragged or f.width > 1 else info[name]
            values[f.name] = str(value) if f.dtype == "str" else value
    for f in _OF_ATOMS:
        if unit_name(f) in atoms.arrays:
            values[f.name] = atoms.arrays[unit_name(f)]
    results = atoms.calc.results if atoms.calc else {}
    if "energy" not in values and "energy" in results:
        values["energy"] = results["energy"] / HARTREE_TO_EV
    if "dipole" not in values and "dipole" in results:
        values["dipole"] = np.asarray(results["dipole"]) / BOHR_TO_ANGSTROM
    if "forces" not in values and "forces" in results:
        values["forces"] = np.asarray(results["forces"]) / FORCE_TO_EV_PER_ANGSTROM
    return values


def _batch(rows: list[Record]) -> Batch:
    """Rows as columns, with the fields that all rows have."""
    fields = [f for f in FIELDS if all(f.name in row for row in rows)]
    return batch_of(rows, fields, lambda row, f: row[f.name])


def _property(field: Field) -> str:
    """A column of the atoms as the comment line names it: real or integer, and how wide."""
    kind = "I" if np.dtype(field.dtype).kind == "i" else "R"
    return f"{unit_name(field)}:{kind}:{field.width}"


def _in_comment(field: Field) -> bool:
    return field.name not in OFFSETS and field.ragged != "atom"


def _written(value: object) -> str:
    """A value in the comment line. `repr` gives the digits that distinguish two numbers."""
    if isinstance(value, str):
        return _quoted(f"_JSON {json.dumps(value)}" if _misread(value) else value)
    if isinstance(value, np.ndarray):
        return _quoted(
            " ".join(map(_written, value.ravel().tolist())) if value.size else "_JSON []"
        )
    if isinstance(value, bool):
        return "T" if value else "F"
    return repr(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _misread(text: str) -> bool:
    """Whether ASE would misread a text.

    It takes the SMILES of hydrogen fluoride, F, for a boolean, a status "nan" for a number, and ""
    for the beginning of the next value.
    """
    words = re.findall(r"[^\s,]+", text)
    return len(text.splitlines()) != 1 or text[:1] == "_" or all(map(_is_value, words))


def _is_value(word: str) -> bool:
    with suppress(ValueError):
        float(word)
        return True
    return word.lower() in ("t", "f", "true", "false")
