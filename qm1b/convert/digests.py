"""SHA-256 of all that an exported file holds, so that damage is noticed when it is imported.

A digest is of values, not of the bytes of a file: other software may write the file again, in other
pieces or with another compression, and the digests still hold.
"""

import difflib
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import numpy as np

from qm1b.errors import UserError
from qm1b.folder.manifest.manifest_schema import MANIFEST
from qm1b.rows.batch import OFFSETS, Batch
from qm1b.rows.schema import DROP_FIELDS, Drop, Field, Json, fields_of

DIGESTS = "digests"
"""Entry in the metadata of a file with everything: a digest of each of NAMES."""

NAMES = ("manifest", "dropped", "rows")
"""The parts of an export in the order in which they are read: the last is in the file itself."""


class RowDigest:
    """The digest of all rows, the same for any division into batches.

    The values of each field are one sequence of little-endian numbers, or of texts with their
    lengths. Not-a-numbers count as equal, but -0 is not 0.
    """

    def __init__(self, settings: Json) -> None:
        """Begin with no row, of a run with these settings."""
        self._of = fields_of(settings)
        self._fields = {f.name: hashlib.sha256() for f in self._of}

    def without(self, names: Collection[str]) -> None:
        """Leave fields out that the file of an earlier version does not have."""
        self._of = tuple(f for f in self._of if f.name not in names)
        self._fields = {f.name: self._fields[f.name] for f in self._of}

    def add(self, batch: Batch) -> None:
        """Count the next rows, which have all fields that are not left out."""
        for f in self._of:
            # Of ragged rows the lengths count: offsets depend on where a batch begins.
            values = np.diff(batch[f.name]) if f.name in OFFSETS else batch[f.name]
            self._fields[f.name].update(_bytes(f, values))

    def hexdigest(self) -> str:
        """The digest of what was added so far."""
        parts = [f"{name} {digest.hexdigest()}\n" for name, digest in self._fields.items()]
        return hashlib.sha256("".join(parts).encode()).hexdigest()


class DropDigest:
    """The digest of dropped lines in their order."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, drops: Iterable[Drop]) -> None:
        """Count the next lines; fields that earlier versions lack count where they say anything."""
        for drop in drops:
            pairs = ((getattr(drop, f.name), f.earlier) for f in DROP_FIELDS)
            values = [value for value, earlier in pairs if value != earlier]
            self._digest.update(f"{json.dumps(values)}\n".encode())

    def hexdigest(self) -> str:
        """The digest of what was added so far."""
        return self._digest.hexdigest()


def of_manifest(values: Mapping[str, object]) -> str:
    """The digest of a manifest, whatever the order of its entries and the space between them."""
    whole = {name: value for name, value in values.items() if name != DIGESTS}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def entry(manifest: Json, drops: DropDigest, rows: RowDigest) -> dict[str, str]:
    """The entry DIGESTS."""
    values = (of_manifest(manifest), drops.hexdigest(), rows.hexdigest())
    return dict(zip(NAMES, values, strict=True))


def told(path: Path, manifest: Json) -> dict[str, str]:
    """The entry DIGESTS of a file's manifest; empty in one of an earlier version.

    Raises:
        UserError: it is not what an export writes, or its name is damaged.
    """
    recorded = manifest.get(DIGESTS, {})
    others = [name for name in manifest if name not in MANIFEST.parts and name != DIGESTS]
    renamed = not recorded and difflib.get_close_matches(DIGESTS, others, 1, 0.5)
    if renamed or not isinstance(recorded, dict) or (recorded and recorded.keys() != set(NAMES)):
        raise UserError(f"{path} is damaged (its digests); write it again with qm1b export --all")
    return {name: str(digest) for name, digest in recorded.items()}


def _bytes(field: Field, values: np.ndarray) -> bytes:
    if field.dtype == "str":
        texts = [str(value).encode(errors="surrogatepass") for value in values]
        return b"".join(len(text).to_bytes(8, "little") + text for text in texts)
    array = np.asarray(values, np.dtype(field.dtype).newbyteorder("<"))
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.tobytes()
