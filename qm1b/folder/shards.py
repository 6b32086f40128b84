"""The files in an output folder: shards (HDF5), the manifest (JSON) and dropped.csv.

Every file is written under a temporary name, flushed to the disk and renamed, so that a file with
its proper name is whole; a shard also carries a checksum, and is compared with it before it is
read. Ragged values are flat with offsets: one large read instead of many small.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from pyscf_ipu.base.terminal import counted
from qm1b.errors import UserError
from qm1b.folder import checksum
from qm1b.folder.manifest.manifest import Manifest
from qm1b.folder.manifest.manifest_schema import MEND, SETTINGS, complete
from qm1b.rows import dropped
from qm1b.rows.batch import Batch, batch_of_rows, column, completed, row_of
from qm1b.rows.schema import DROP_FIELDS, VERSION, Drop, Field, Json, Row, fields_of
from qm1b.rows.unit import Unit
from qm1b.storage.files import atomic_write, not_written, refuse_stream, write_json
from qm1b.storage.foreign_hdf5 import NotOurs, attributes, values

MANIFEST = "manifest.json"
DROPPED = "dropped.csv"
LOG = "workers.log"
VERIFY_JSON, VERIFY_PNG = "verify.json", "verify.png"
"""What `qm1b verify` writes."""

JSON_KEYS = {"settings", "versions", "input"}
"""Attributes of a shard that hold an object as JSON."""


def shards(folder: Path) -> list[Path]:
    """The shards of a run, in the order of the input."""
    return sorted(folder.glob("shard-*.h5"), key=lambda path: (unit_of(path), path.name))


def shard_path(folder: Path, unit: int) -> Path:
    """The path of a work unit's shard."""
    return folder / f"shard-{unit:05d}.h5"


def unit_of(path: Path) -> int:
    """The work unit that a shard's name says; -1 for a name that `shard_path` does not give."""
    digits = path.name.removeprefix("shard-").removesuffix(".h5")
    unit = int(digits) if digits.isdecimal() and digits.isascii() else -1
    return unit if path.name == shard_path(path.parent, unit).name else -1


def write_shard(
    folder: Path, index: int, rows: list[Row], drops: list[Drop], attributes: Mapping[str, object]
) -> Path:
    """Write one work unit; rows and drops in the order given.

    Among the attributes are the settings, which decide the fields (`schema.fields_of`).
    """
    image = io.BytesIO()  # in memory: HDF5 takes a full disk badly, and the checksum needs it all
    with h5py.File(image, "w", userblock_size=checksum.BLOCK) as file:
        file.attrs["schema_version"] = VERSION
        for key, value in attributes.items():
            plain = isinstance(value, bool | int | str)
            file.attrs[key] = value if plain else json.dumps(value)
        fields = fields_of(attributes)
        _write_group(file.create_group("rows"), fields, batch_of_rows(rows, fields).columns)
        columns = {
            f.name: column(f, [getattr(drop, f.name) for drop in drops], len(drops))
            for f in DROP_FIELDS
        }
        _write_group(file.create_group("dropped"), DROP_FIELDS, columns)
    path = shard_path(folder, index)
    atomic_write(path, lambda stream: stream.write(checksum.sealed(image.getvalue())))
    return path


def read_shard(path: Path) -> Batch:
    """All rows of a shard.

    Raises:
        Damaged: the file is not what was written.
        UserError: it cannot be read.
    """
    return read_whole(path)[1]


def read_drops(path: Path) -> list[Drop]:
    """The dropped lines of a shard; raises as `read_shard`."""
    with opened(path) as file:
        return _drops(file)


def read_attributes(path: Path) -> Json:
    """The file attributes of a shard: settings, versions, definitions; raises as `read_shard`."""
    with opened(path) as file:
        return _attributes(file)


def settings_of_run(folder: Path) -> Json | None:
    """The settings of the run that has left shards in a folder; None if there are none.

    The shards know them for certain, the manifest says them if all shards are damaged.

    Raises:
        UserError: nothing of a run that is there says them.
    """
    paths = shards(folder)
    settings, problem = settings_of_shards(paths)
    if settings is not None or not paths:
        return settings
    try:
        return read_manifest(folder).settings
    except UserError as error:
        raise UserError(
            f"the run in {folder} cannot be resumed as it was, because neither its "
            f"{counted(len(paths), 'shard')} nor its manifest say its settings ({problem}; "
            f"{error}); give --padding and --max-aos as the run had them, or another --out"
        ) from None


def settings_of_shards(paths: Iterable[Path]) -> tuple[Json | None, str]:
    """The settings that the first good shard says, or None; and what is wrong with the first."""
    problem = ""
    for path in paths:
        try:
            settings = json.loads(read_attributes(path).get("settings", "{}"))
        except UserError as error:
            problem = problem or str(error)
            continue
        wrong = next(SETTINGS.problems(settings, "settings"), "")
        if not wrong:
            return settings, problem
        problem = problem or f"shard {path}: {wrong}"
    return None, problem


def read_whole(path: Path) -> tuple[Json, Batch, list[Drop]]:
    """Attributes, rows and dropped lines of a shard in one pass; raises as `read_shard`."""
    with opened(path) as file:
        entries = _attributes(file)
        rows = Batch(_columns(file, "rows", fields_of(entries)))
        if not rows.is_consistent:
            raise NotOurs("the columns of its rows do not fit together")
        return entries, completed(rows, entries), _drops(file)


def read_unit(path: Path) -> Unit:
    """A shard as the unit that was written; raises as `read_shard`."""
    _, batch, drops = read_whole(path)
    return Unit(unit_of(path), rows=list(map(row_of, batch.rows())), drops=drops)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json."""
    write_json(folder / MANIFEST, manifest.to_dict())


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a run; raises as `read_metadata`."""
    return Manifest.from_dict(read_metadata(folder))


def read_metadata(folder: Path) -> Json:
    """The manifest of a run as the file has it.

    Raises:
        UserError: the folder holds none, or a damaged one.
    """
    try:
        refuse_stream(folder / MANIFEST)
        return complete(json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
    except FileNotFoundError:
        what = "does not exist" if not folder.exists() else f"holds no run (no {MANIFEST})"
        raise UserError(f"folder {folder} {what}; give the --out of a qm1b generate") from None
    except UserError as error:
        raise UserError(f"folder {folder}: {error}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{folder / MANIFEST} cannot be read ({error}). {MEND}") from None


def write_drops(path: Path, drops: Iterable[Drop]) -> None:
    """Write dropped lines as CSV; raises UserError if the disk is full."""
    data = dropped.as_csv(drops)
    atomic_write(path, lambda stream: stream.write(data))


def append_dropped(folder: Path, drops: Iterable[Drop]) -> None:
    """Add lines to dropped.csv during the run; the shards hold them safely.

    Raises:
        UserError: the disk is full or not writable.
    """
    path = folder / DROPPED
    try:
        with open(path, "ab") as stream:
            stream.write(dropped.as_csv(drops, header=False))
    except OSError as error:
        raise not_written(path, error) from error


def clean(folder: Path) -> None:
    """Remove the temporary files that a killed run left; only its owner may call this."""
    for pattern in (".shard-*.h5*.tmp", f".{MANIFEST}*.tmp", f".{DROPPED}*.tmp"):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


def _write_group(
    group: h5py.Group, fields: Iterable[Field], columns: Mapping[str, np.ndarray]
) -> None:
    for f in fields:
        if f.dtype == "str":
            texts = np.array([_text(str(v)) for v in columns[f.name]], dtype=object)
            data = group.create_dataset(f.name, data=texts, dtype=h5py.string_dtype())
        else:
            data = group.create_dataset(f.name, data=columns[f.name])
        _write_texts(data, units=f.unit, description=f.text)


def _write_texts(data: h5py.Dataset, **texts: str) -> None:
    """Give a new dataset attributes: `attrs[name] = text` takes three times as long."""
    dtype, single = h5py.string_dtype(), h5py.h5s.create(h5py.h5s.SCALAR)
    kind = h5py.h5t.py_create(dtype, logical=True)
    for name, text in texts.items():
        h5py.h5a.create(data.id, name.encode(), kind, single).write(np.array(text, dtype))


def _attributes(file: h5py.File) -> Json:
    """The attributes of a shard, of which those of JSON are objects."""
    entries = attributes(file)
    for name in JSON_KEYS & entries.keys():
        try:
            is_object = isinstance(json.loads(entries[name]), dict)
        except (TypeError, ValueError, RecursionError):
            is_object = False
        if not is_object:
            raise NotOurs(f"its {name} are no JSON object")
    return entries


def _text(value: str) -> str:
    """Text that HDF5 can hold: no NUL, no lone surrogate."""
    return value.replace("\0", "\\0").encode("utf-8", errors="replace").decode()


@contextmanager
def opened(path: Path, checked: bool = False) -> Iterator[h5py.File]:
    """A shard for reading, compared with its checksum unless that was done before.

    The bytes of the checksum are not kept: `foreign_hdf5` looks into the file by its name.
    """
    if not checked:
        checksum.check(path)
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, KeyError, RuntimeError) as error:
        raise UserError(
            f"shard {path} is intact, but not in this version's format ({error}); use it with the "
            "version that wrote it"
        ) from None


def _columns(file: h5py.File, group: str, fields: Iterable[Field]) -> dict[str, np.ndarray]:
    """The fields that a group has; an earlier version may not have written every one."""
    columns: dict[str, np.ndarray] = {}
    for f in fields:
        try:
            is_text = f.dtype == "str"
            columns[f.name] = values(file, group, f.name, is_text=is_text, shape=f.shape)
        except KeyError:
            if f.earlier is None:
                raise
    return columns


def _drops(file: h5py.File) -> list[Drop]:
    columns = _columns(file, "dropped", DROP_FIELDS)
    entries = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [Drop(**dict(zip(columns, entry, strict=True))) for entry in entries]
