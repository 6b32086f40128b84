"""Formats that are cut at lines: SMILES, one per line, SDF, and XYZ.

`qm1b.screening.geometries` reads the text of an SDF entry or an XYZ frame.
"""

import io
from collections.abc import Iterator

from pyscf_ipu.molecule.files import sdf
from pyscf_ipu.molecule.files.framing import frames_of
from pyscf_ipu.molecule.files.opening import Truncated, bounded_lines
from qm1b.inputs import ids
from qm1b.inputs.records import TOO_LONG, Record, smiles_and_rest, smiles_of


def entries(text: io.TextIOWrapper) -> Iterator[Record]:
    """A record per line of SMILES, with or without an id and further columns (GDB: tabs)."""
    for line in bounded_lines(text):
        smiles, rest = smiles_and_rest(line)
        record = TOO_LONG if isinstance(line, Truncated) else Record()
        yield record._replace(smiles=smiles, id=ids.after_smiles(rest))


def id_entries(text: io.TextIOWrapper) -> Iterator[Record]:
    """A record per line of an id, a tab and a SMILES; a line without a tab is SMILES."""
    for line in bounded_lines(text):
        name, tab, smiles = line.partition("\t")
        record = TOO_LONG if isinstance(line, Truncated) else Record()
        smiles, name = (smiles_of(smiles), ids.id_of(name)) if tab else (smiles_of(line), "")
        yield record._replace(smiles=smiles, id=name)


def sdf_entries(text: io.TextIOWrapper, id_field: str | None = None) -> Iterator[Record]:
    """A record per SDF entry; its id is its title, or a data field."""
    for entry in sdf.entries(bounded_lines(text)):
        name = ids.of_sdf(entry.lines, id_field)
        if entry.is_cut:
            what = f"more than {sdf.MAX_CHARACTERS} characters"
            yield Record(reason="too_long", detail=what, id=name)
        else:
            yield Record(block=entry.block, id=name)


def frame_entries(text: io.TextIOWrapper, id_key: str | None = None) -> Iterator[Record]:
    """A record per XYZ frame, and one for what stands between two frames and is no title."""
    for piece in frames_of(text):
        name = ids.of_comment(piece.comment, id_key)
        if piece.trouble:
            yield Record(reason=piece.trouble.reason, detail=str(piece.trouble), id=name)
        else:
            yield Record(block=piece.block, id=name)
