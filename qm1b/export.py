"""Shards to Parquet, with the columns of QM1B: energies in eV, positions in Bohr."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pyscf_ipu.molecule import SYMBOLS
from pyscf_ipu.units import HARTREE_TO_EV

from . import store
from .errors import UserError
from .manifest import LEVEL_KEYS
from .schema import COLUMNS, CONVERGED, Column

_ARROW: dict[str, pa.DataType] = {
    "string": pa.string(),
    "double": pa.float64(),
    "float": pa.float32(),
    "bool": pa.bool_(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "list<uint8>": pa.list_(pa.uint8()),
    "list<float>": pa.list_(pa.float32()),
}

_SYMBOLS = np.array(SYMBOLS, dtype=object)


@dataclass(frozen=True)
class Exported:
    """What an export wrote."""

    rows: int
    left_out: int
    """Rows that are not converged or not finite."""


def export(folder: Path, out: Path, everything: bool = False) -> Exported:
    """Write the rows of a run as one Parquet file, one row group a shard.

    Args:
        folder: the `--out` of a run.
        out: the Parquet file; replaced if it exists.
        everything: also rows that did not converge or are not finite.

    Raises:
        UserError: no run there, a damaged shard, or `out` cannot be written.
    """
    manifest = store.read_manifest(folder)
    paths = store.shards(folder)
    if not paths:
        raise UserError(f"folder {folder} holds no shards; run qm1b generate to its end first.")
    if not out.parent.is_dir():
        raise UserError(f"folder {out.parent} does not exist; make it first.")
    schema = arrow_schema(manifest)
    counts = np.zeros(2, dtype=np.int64)

    def write(stream: IO[bytes]) -> None:
        with pq.ParquetWriter(stream, schema) as writer:
            for table, left_out in tables(paths, schema, everything):
                writer.write_table(table)
                counts[:] += len(table), left_out

    store.atomic_write(out, write)
    return Exported(int(counts[0]), int(counts[1]))


def arrow_schema(manifest: dict[str, Any]) -> pa.Schema:
    """The Arrow schema: QM1B's columns and types, units and the level of theory as metadata.

    N is uint8, as in QM1B, unless the run allowed molecules of more than 255 orbitals.
    """
    wide = manifest["settings"]["max_aos"] > np.iinfo(np.uint8).max

    def field(column: Column) -> pa.Field:
        arrow = "uint16" if column.name == "N" and wide else column.arrow
        metadata = {"unit": column.unit, "description": column.description}
        return pa.field(column.name, _ARROW[arrow], metadata=metadata)

    metadata = {key: _text(manifest[key]) for key in LEVEL_KEYS}
    metadata["units"] = json.dumps({column.name: column.unit for column in COLUMNS})
    metadata["hartree_to_ev"] = str(HARTREE_TO_EV)
    return pa.schema([field(column) for column in COLUMNS], metadata=metadata)


def tables(
    paths: list[Path], schema: pa.Schema, everything: bool
) -> Iterator[tuple[pa.Table, int]]:
    """One table a shard, and how many of its rows were left out."""
    for path in paths:
        shard = store.read_shard(path)
        good = (shard["status"] == CONVERGED) & shard["converged"]
        for name in ("energy", "homo", "lumo", "energy_std"):
            good &= np.isfinite(shard[name])
        keep = np.ones_like(good) if everything else good
        table = pa.Table.from_pydict(_columns(shard, np.flatnonzero(keep)), schema=schema)
        yield table, int((~keep).sum())


def _columns(shard: store.Shard, keep: np.ndarray) -> dict[str, Any]:
    """The Parquet columns of the rows `keep`."""
    starts, stops = shard["atom_offset"][keep], shard["atom_offset"][keep + 1]
    numbers = [shard["numbers"][a:b] for a, b in zip(starts, stops, strict=True)]
    homo, lumo = shard["homo"][keep] * HARTREE_TO_EV, shard["lumo"][keep] * HARTREE_TO_EV
    return {
        "smile": shard["smiles"][keep],
        "atoms": ["".join(_SYMBOLS[z]) for z in numbers],
        "z": numbers,
        "energy": shard["energy"][keep] * HARTREE_TO_EV,
        "homo": homo.astype(np.float32),
        "lumo": lumo.astype(np.float32),
        "N": shard["n_ao"][keep],
        "std": (shard["energy_std"][keep] * HARTREE_TO_EV).astype(np.float32),
        "y": lumo - homo,
        "pos": [shard["positions"][a:b].ravel() for a, b in zip(starts, stops, strict=True)],
        "status": shard["status"][keep],
        "converged": shard["converged"][keep],
        "cycles": shard["cycles"][keep],
        "commutator_norm": shard["commutator_norm"][keep].astype(np.float32),
        "dipole": list(shard["dipole"][keep].astype(np.float32)),
        "conformer": shard["conformer"][keep],
        "seed": shard["seed"][keep],
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
