"""XYZ and extended XYZ: a record per frame.  `pyscf_ipu.molecule.files` reads what a frame says."""

import io
from collections.abc import Iterator

from pyscf_ipu.molecule.files.framing import frames_of
from qm1b.inputs import ids
from qm1b.inputs.records import Record


def entries(text: io.TextIOWrapper, id_key: str | None = None) -> Iterator[Record]:
    """A record per frame, and one for what stands between two frames and is no title."""
    for piece in frames_of(text):
        name = ids.of_comment(piece.comment, id_key)
        if piece.trouble:
            yield Record(reason=piece.trouble.reason, detail=str(piece.trouble), id=name)
        else:
            yield Record(block=piece.block, id=name)
