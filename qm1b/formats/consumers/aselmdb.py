"""ASE's database in an LMDB file, `.aselmdb`, as fairchem and MACE read it.

The file is that of the package ase-db-backends: a JSON object per row, packed with zlib, under its
number. Arrays are plain lists, which all three readers take. It is written directly: that package
looks for each new number in the list of all earlier ones, so a million rows would take it hours.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.extras import how_to_install
from qm1b.errors import UserError
from qm1b.formats.consumers.ase_rows import AseRow, ase_rows
from qm1b.rows.batch import Batch
from qm1b.rows.dataset import Dataset
from qm1b.storage import files

if TYPE_CHECKING:
    import lmdb

ENDING = ".aselmdb"
METADATA = "metadata.npz"
"""The file beside it from which fairchem reads the number of atoms of every row (`natoms`)."""

MOST_BYTES = 2**41
"""LMDB's map: address space, not memory or disk. The file grows as rows come."""


def write_aselmdb(out: Path, batches: Iterator[Batch], source: Dataset) -> list[Path]:
    """Write rows as one file, and METADATA beside it; returns the path of the latter.

    Of a row only its number of atoms stays in memory, in two bytes.

    Raises:
        UserError: another database is in the folder, or the files cannot be written.
        MissingPackage: lmdb is not installed.
    """
    try:
        import lmdb
    except ImportError:
        raise MissingPackage(
            f"writing {ENDING} needs lmdb: run {how_to_install('exports')}"
        ) from None
    others = [path.name for path in out.parent.glob(f"*{ENDING}") if path != out]
    if others:
        raise UserError(
            f"folder {out.parent} holds {others[0]}, and one {METADATA} cannot describe two files; "
            "write to a folder of its own"
        )
    atoms: list[np.ndarray] = []

    def write(stream: IO[bytes]) -> None:
        try:
            with lmdb.open(
                stream.name, subdir=False, map_size=MOST_BYTES, lock=False, sync=False
            ) as database:
                _fill(database, batches, source, atoms=atoms)
        except lmdb.Error as error:
            raise OSError(str(error)) from error

    files.atomic_write(out, write)
    counts = np.concatenate([np.zeros(0, np.uint16), *atoms])
    beside = out.with_name(METADATA)
    files.atomic_write(beside, lambda stream: np.savez_compressed(stream, natoms=counts))
    return [beside]


def _fill(
    database: lmdb.Environment,
    batches: Iterator[Batch],
    source: Dataset,
    atoms: list[np.ndarray],
) -> None:
    """Put the rows under 1, 2, ... with a transaction for each batch, then what describes them."""
    following = 1
    for batch in batches:
        with database.begin(write=True) as transaction:
            for number, row in enumerate(ase_rows(batch), following):
                transaction.put(str(number).encode(), _packed(_entry(row)))
        following += len(batch)
        atoms.append(np.diff(batch["atom_offset"]).astype(np.uint16))
    with database.begin(write=True) as transaction:
        transaction.put(b"nextid", _packed(following))
        transaction.put(b"metadata", _packed(_about(source)))


def _entry(row: AseRow) -> dict[str, object]:
    """A row as ase-db-backends has it; fairchem and MACE put its `data` into `atoms.info`."""
    return {
        "numbers": row.numbers.tolist(),
        "positions": row.positions.tolist(),
        "cell": np.zeros((3, 3)).tolist(),
        "pbc": [False] * 3,
        "unique_id": row.unique_id,
        "ctime": 0.0,  # so that the same rows give the same bytes
        "mtime": 0.0,
        "user": "",
        "calculator": "qm1b",
        "calculator_parameters": {},
        **{k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in row.results.items()},
        "data": {
            "charge": row.charge,
            "spin": row.multiplicity,
            "total_charge": row.charge,  # MACE's names for the same
            "total_spin": row.multiplicity,
            "smiles": row.smiles,
            "line": row.line,
            "conformer": row.conformer,
            "id": row.id,
            **row.energies,
            **{name: values.tolist() for name, values in row.properties.items()},
        },
    }


def _about(source: Dataset) -> dict[str, object]:
    """What the database says of itself."""
    return {
        "level": source.metadata.get("settings", {}),
        "functional_definition": source.metadata.get("functional_definition", ""),
        "free_atom_energies_hartree": source.free_atom_energies,
        "units": {"energy": "eV", "forces": "eV/Ang", "positions": "Ang", "dipole": "e*Ang"}
        | {"quadrupole": "e*Ang^2"},
    }


def _packed(value: object) -> bytes:
    return zlib.compress(json.dumps(value).encode())
