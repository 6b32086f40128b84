"""Values of HDF5 files that others may have made: what they say of themselves is not believed.

HDF5 follows links into other files, makes room for whatever a dataset says it holds, and walks
without end through a heap of texts that has an entry of no size.  So both are looked at first.
"""

import math
import struct
from typing import Any, cast

import h5py
import numpy as np

_HEAP = b"GCOL\x01\0\0\0"
"""How a heap of texts begins; no text holds a NUL."""

_PLACE = np.dtype([("length", "<u4"), ("heap", "<u8"), ("entry", "<u4")])
"""What a dataset holds of a text that lies in a heap."""

_ENTRY = struct.Struct("<H6xQ")
"""The head of an entry in a heap: its index, 0 for the room that is left, and its size in bytes."""

_KINDS = (h5py.h5t.TypeStringID, h5py.h5t.TypeIntegerID, h5py.h5t.TypeEnumID)
"""Of attributes; booleans are an enum. To read a list of any length can end the process."""


class NotOurs(OSError):
    """The file, or one of its datasets, is not of the kind that qm1b writes."""


def check_heaps(image: bytes, start: int) -> None:
    """Raise NotOurs where a heap of texts, in a file whose HDF5 begins at `start`, does not end."""
    sizes = slice(start + 13, start + 15) if image[start + 8] < 2 else slice(start + 9, start + 11)
    if image[start : start + 8] != b"\x89HDF\r\n\x1a\n" or image[sizes] != b"\x08\x08":
        raise NotOurs("no HDF5 of 64 bits")
    heap, steps = image.find(_HEAP), len(image) // 16  # heaps lie beside each other
    while heap >= 0:
        at, end = heap + 16, heap + int.from_bytes(image[heap + 8 : heap + 16], "little")
        while at + 16 <= end <= len(image):
            (index, size), steps = _ENTRY.unpack_from(image, at), steps - 1
            at += 16 + (size + 7) // 8 * 8 if index else size or end + 1
            if steps < 0:
                raise NotOurs("heaps of texts within each other")
        if not at <= end <= len(image):
            raise NotOurs("a heap of texts without end")
        heap = image.find(_HEAP, heap + 1)


def values(
    file: h5py.File, group: str, name: str, *, is_text: bool, shape: tuple[int, ...] = ()
) -> np.ndarray:
    """The values [N, *shape] of a dataset, text as str.

    Raises:
        KeyError: there is none.
        NotOurs: it is of another kind, lies in another file, or is larger than this one.
    """
    path = f"{group}/{name}"
    links = file.id.links
    try:
        for part in (group, path):
            link = part.encode()
            if not links.exists(link) or links.get_info(link).type != h5py.h5g.LINK_HARD:
                raise KeyError(f"no dataset {path}")
        # A shard has forty datasets, and h5py's `Dataset` takes longer than to read one.
        if h5py.h5g.get_objinfo(file.id, path.encode()).type == h5py.h5g.DATASET:
            dataset = h5py.h5d.open(file.id, path.encode())
            if _is_ours(file, dataset, is_text=is_text, dimensions=1 + len(shape)):
                return _read(dataset)
    except (MemoryError, TypeError, ValueError) as error:  # h5py's
        raise NotOurs(f"dataset {path}: {error}") from None
    raise NotOurs(f"dataset {path} is of another kind, or larger than the file")


def attributes(file: h5py.File) -> dict[str, Any]:
    """The attributes of a file, each a single value; raises NotOurs for others."""
    try:
        ids = [file.attrs.get_id(name) for name in file.attrs]
        if all(one.shape == () and isinstance(one.get_type(), _KINDS) for one in ids):
            return dict(file.attrs)
    except (MemoryError, TypeError, ValueError) as error:  # h5py's
        raise NotOurs(f"an attribute: {error}") from None
    raise NotOurs("an attribute is no single number or text")


def _is_ours(
    file: h5py.File, dataset: h5py.h5d.DatasetID, *, is_text: bool, dimensions: int
) -> bool:
    """Whether a dataset is one piece of its file, of numbers or of texts, and not larger."""
    plan, size = dataset.get_create_plist(), file.id.get_filesize()
    if plan.get_layout() != h5py.h5d.CONTIGUOUS or plan.get_external_count():
        return False
    shape, dtype = dataset.shape, dataset.dtype
    count, text = math.prod(shape), h5py.check_string_dtype(dtype)
    is_free_text = text is not None and text.length is None
    of_kind = is_free_text if is_text else dtype.kind in "biuf"
    if not of_kind or len(shape) != dimensions or count * dtype.itemsize > size:
        return False
    offset = dataset.get_offset()
    if not is_text or not count or offset is None:
        return True
    places = np.fromfile(file.filename, _PLACE, count, offset=offset)
    return int(places["length"].sum(dtype=np.int64)) <= size


def _read(dataset: h5py.h5d.DatasetID) -> np.ndarray:
    """The values of a dataset; text, which has one dimension, as str."""
    entries = np.empty(dataset.shape, dataset.dtype)
    dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, entries)
    text = h5py.check_string_dtype(dataset.dtype)
    if text is None:
        return entries
    encoded = cast(list[bytes], entries.tolist())
    return np.array([each.decode(text.encoding, "replace") for each in encoded], object)
