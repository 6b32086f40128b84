"""The formats of `qm1b export`: a table of writers, and which of them a file name asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from qm1b.convert import hub
from qm1b.errors import UserError
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats import extxyz, parquet
from qm1b.formats.columns import arrow_schema
from qm1b.formats.consumers import aselmdb, layouts, schnetpack
from qm1b.rows.batch import Batch
from qm1b.storage import files

Closing = Callable[[], Mapping[str, str]]
"""Gives metadata after the last row."""


Writer = Callable[[Path, Iterator[Batch], ShardFolder], list[Path]]
"""Writes rows of a run under a path, of which no more than a part is in memory; returns the paths
of further files."""


@dataclass(frozen=True)
class FileKind:
    """A format of `qm1b export`."""

    write: Writer
    endings: tuple[str, ...] = ()
    """What a file's name may end with; none if it is a folder."""
    write_all: Callable[[Path, Iterator[Batch], ShardFolder, Closing], list[Path]] | None = None
    """Writes every field of every row, with metadata at the end, for `qm1b import`; None if the
    format cannot hold that."""


def _parquet(out: Path, batches: Iterator[Batch], source: ShardFolder) -> list[Path]:
    schema = arrow_schema(source.metadata)
    files.atomic_write(out, lambda stream: parquet.write(stream, batches, schema))
    return []


def _exact_parquet(
    out: Path, batches: Iterator[Batch], source: ShardFolder, closing: Closing
) -> list[Path]:
    schema = arrow_schema(source.metadata, exact=True)
    files.atomic_write(out, lambda s: parquet.write(s, batches, schema, closing=closing))
    return []


def _extxyz(
    out: Path, batches: Iterator[Batch], source: ShardFolder, closing: Closing = dict
) -> list[Path]:
    del closing  # the file holds every field in any case, and the manifest lies beside it
    forces = bool(source.metadata["settings"].get("forces"))
    first = extxyz.free_atoms(source.free_atoms_of_rows, forces)

    def write(stream: IO[bytes]) -> None:
        extxyz.write(stream, batches, out.suffix == ".gz", first=first)

    files.atomic_write(out, write)
    return []


KINDS: dict[str, FileKind] = {
    "parquet": FileKind(_parquet, (".parquet",), _exact_parquet),
    "extxyz": FileKind(_extxyz, extxyz.ENDINGS, _extxyz),
    "aselmdb": FileKind(aselmdb.write_aselmdb, (aselmdb.ENDING,)),
    "schnetpack": FileKind(schnetpack.write_schnetpack, (schnetpack.ENDING,)),
    "ace": FileKind(layouts.write_ace, (".h5", ".hdf5")),
    "spice": FileKind(layouts.write_spice, (".h5", ".hdf5")),
    "hub": FileKind(hub.write_hub),
}
"""By name, as of `--format`."""


def kind_of(out: Path, name: str | None = None) -> FileKind:
    """The format of a name or, without one, that of the file's ending.

    Raises:
        UserError: the ending is of no format, of several, or not of the one that was named.
    """
    if name is not None:
        if name not in KINDS:
            raise UserError(f"unknown format {name!r}: use one of {', '.join(KINDS)}")
        kind = KINDS[name]
        if kind.endings and not _ends(out.name, kind):
            raise UserError(
                f"{out} does not end with {' or '.join(kind.endings)}, as a file of the format "
                f"{name} must; give it such a name"
            )
        return kind
    fitting = [key for key, kind in KINDS.items() if _ends(out.name, kind)]
    if len(fitting) == 1:
        return KINDS[fitting[0]]
    if fitting:
        raise UserError(f"{out} may be of several kinds: give --format {' or '.join(fitting)}")
    endings = Counter(ending for kind in KINDS.values() for ending in kind.endings)
    raise UserError(
        f"{out} is of an unknown kind: use {', '.join(e for e, n in endings.items() if n == 1)}, "
        f"or give --format ({', '.join(KINDS)})"
    )


def _ends(name: str, kind: FileKind) -> bool:
    return name.endswith(kind.endings)
