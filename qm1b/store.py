"""What lies in the output folder: shards (HDF5), the manifest (JSON) and dropped.csv.

Every file is written under a temporary name, flushed to the disk and renamed, so that a file with
its proper name is whole. Ragged values are flat with offsets: one large read instead of many small.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np

from .errors import UserError
from .schema import DROP_FIELDS, FIELDS, VERSION, Drop, Field, Row

MANIFEST = "manifest.json"
DROPPED = "dropped.csv"
LOG = "workers.log"

Shard = dict[str, Any]
"""The datasets of a shard by name (ragged ones flat), as numpy arrays; text as arrays of str."""


def prepare(folder: Path) -> None:
    """Make the output folder, or refuse.

    Raises:
        UserError: it cannot be written, or already holds a run.
    """
    if shards(folder) or ((folder / MANIFEST).exists() and not _failed(folder)):
        raise UserError(
            f"folder {folder} already holds a run; give another --out, or delete the folder first."
        )
    probe = folder / f".write-test-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"folder {folder} cannot be written ({error.strerror}); give another --out."
        ) from None


def _failed(folder: Path) -> bool:
    """Whether the run in a folder could not even start: there is nothing to lose then."""
    return read_manifest(folder).get("status") == "failed"


def shards(folder: Path) -> list[Path]:
    """The shards of a run, in the order of the input."""
    return sorted(folder.glob("shard-*.h5"))


def write_shard(
    folder: Path, index: int, rows: list[Row], drops: list[Drop], attributes: Mapping[str, Any]
) -> Path:
    """Write one work unit; rows and drops in the order given."""
    path = folder / f"shard-{index:05d}.h5"

    def write(stream: IO[bytes]) -> None:
        with h5py.File(stream, "w") as file:
            file.attrs["schema_version"] = VERSION
            for key, value in attributes.items():
                plain = isinstance(value, bool | int | str)
                file.attrs[key] = value if plain else json.dumps(value)
            _write_group(file.create_group("rows"), FIELDS, _row_columns(rows))
            columns = {f.name: [getattr(drop, f.name) for drop in drops] for f in DROP_FIELDS}
            _write_group(file.create_group("dropped"), DROP_FIELDS, columns)

    atomic_write(path, write)
    return path


def read_shard(path: Path) -> Shard:
    """All rows of a shard.

    Raises:
        UserError: the file is damaged.
    """
    return _read(path, "rows", FIELDS)


def read_drops(path: Path) -> list[Drop]:
    """The dropped lines of a shard."""
    columns = _read(path, "dropped", DROP_FIELDS)
    names = [f.name for f in DROP_FIELDS]
    values = zip(*(columns[name].tolist() for name in names), strict=True)
    return [Drop(**dict(zip(names, entry, strict=True))) for entry in values]


def read_attributes(path: Path) -> dict[str, Any]:
    """The file attributes of a shard: settings, versions, definitions."""
    with h5py.File(path, "r") as file:
        return dict(file.attrs)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write manifest.json."""
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    atomic_write(folder / MANIFEST, lambda stream: stream.write(text.encode()))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        UserError: the folder holds none.
    """
    try:
        return json.loads((folder / MANIFEST).read_text())
    except FileNotFoundError:
        what = "does not exist" if not folder.exists() else f"holds no run (no {MANIFEST})"
        raise UserError(f"folder {folder} {what}; give the --out of a qm1b generate.") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{folder / MANIFEST} cannot be read: {error}.") from None


def write_dropped(folder: Path, drops: Iterable[Drop]) -> None:
    """Write dropped.csv whole."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([field.name for field in DROP_FIELDS])
    writer.writerows([drop.line, drop.smiles, drop.reason, drop.detail] for drop in drops)
    data = text.getvalue().encode("utf-8", errors="replace")
    atomic_write(folder / DROPPED, lambda stream: stream.write(data))


def append_dropped(folder: Path, drops: Iterable[Drop]) -> None:
    """Add lines to dropped.csv while the run goes on; the shards hold them safely."""
    with open(folder / DROPPED, "a", newline="", encoding="utf-8", errors="replace") as stream:
        writer = csv.writer(stream)
        writer.writerows([drop.line, drop.smiles, drop.reason, drop.detail] for drop in drops)


def atomic_write(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Call `write` on a temporary file beside `path`, sync it, and give it its name.

    Raises:
        UserError: the disk is full or not writable.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "w+b") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UserError(
            f"cannot write {path}: {error.strerror or error}; make room or give another folder."
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut, where the system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _row_columns(rows: list[Row]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for f in FIELDS:
        if f.ragged or f.name.endswith("_offset"):
            continue
        source = "conformer" if rows and hasattr(rows[0].conformer, f.name) else "result"
        columns[f.name] = [getattr(getattr(row, source), f.name) for row in rows]
    numbers = [row.conformer.numbers for row in rows]
    orbitals = [row.result.mo_energy for row in rows]
    columns["atom_offset"] = _offsets(numbers)
    columns["orbital_offset"] = _offsets(orbitals)
    columns["numbers"] = np.concatenate(numbers) if rows else []
    columns["positions"] = np.concatenate([r.conformer.positions for r in rows]) if rows else []
    columns["mo_energy"] = np.concatenate(orbitals) if rows else []
    return columns


def _offsets(ragged: list[Any]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(values) for values in ragged])]).astype(np.int64)


def _write_group(group: h5py.Group, fields: Iterable[Field], columns: Mapping[str, Any]) -> None:
    for f in fields:
        if f.dtype == "str":
            values = np.array([_text(v) for v in columns[f.name]], dtype=object)
            data = group.create_dataset(f.name, data=values, dtype=h5py.string_dtype())
        else:
            array = np.asarray(columns[f.name], dtype=f.dtype)
            shape = (-1, f.width) if f.width > 1 else (-1,)
            data = group.create_dataset(f.name, data=array.reshape(shape))
        data.attrs["units"] = f.unit
        data.attrs["description"] = f.description


def _text(value: str) -> str:
    """Text that HDF5 can hold: no NUL, no lone surrogate."""
    return value.replace("\0", "\\0").encode("utf-8", errors="replace").decode()


def _read(path: Path, group: str, fields: Iterable[Field]) -> Shard:
    try:
        with h5py.File(path, "r") as file:
            data: Any = file[group]
            return {
                f.name: data[f.name].asstr()[:] if f.dtype == "str" else data[f.name][:]
                for f in fields
            }
    except (OSError, KeyError, RuntimeError) as error:
        raise UserError(f"shard {path} is damaged ({error}); delete it and run again.") from None
