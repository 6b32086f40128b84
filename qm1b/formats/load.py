"""`qm1b.load`: the rows of a dataset folder, a Parquet file or an extended XYZ file, as a stream.

Fields have the names and atomic units of `schema.FIELDS`, whatever the units of the file.
"""

from collections.abc import Sequence
from pathlib import Path

from qm1b.errors import UserError
from qm1b.folder.shard_folder import ShardFolder
from qm1b.rows.batch import BY_NAME, OFFSETS
from qm1b.rows.dataset import Dataset

KINDS = "a folder of qm1b generate, a .parquet file, or an .extxyz or .extxyz.gz file"


def load(path: str | Path, fields: Sequence[str] | None = None) -> Dataset:
    """Open a dataset without reading it.

    Args:
        path: the folder of a run, a `.parquet` file (ours, or with QM1B's columns), or an
            `.extxyz` or `.extxyz.gz` file.
        fields: names of `schema.FIELDS` to read; None for all that the file has. Rows do not have
            the fields that the file lacks.

    Returns:
        A stream of rows in atomic units (`units` names them): iterate over it or over `batches()`.
        Folders and Parquet files also have a length and rows by number (`Indexed`).

    Raises:
        UserError: there is no such file or field, or the file is of an unknown kind.
    """
    path = Path(path)
    known = [name for name in BY_NAME if name not in OFFSETS]
    for name in fields or ():
        if name not in known:
            raise UserError(f"unknown field {name!r}: use some of {', '.join(known)}")
    if not path.exists():
        raise UserError(f"{path} does not exist; give {KINDS}")
    if path.is_dir():
        return ShardFolder(path, fields)
    if not path.is_file():
        raise UserError(f"{path} is a pipe or a device; give {KINDS}")
    if path.suffix == ".parquet":
        from qm1b.formats.parquet import ParquetFile

        return ParquetFile(path, fields)
    from qm1b.formats.extxyz import ExtxyzFile, is_extxyz

    if is_extxyz(path):
        return ExtxyzFile(path, fields)
    raise UserError(f"{path} is of an unknown kind; give {KINDS}")
