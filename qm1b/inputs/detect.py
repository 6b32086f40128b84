"""The format of an input: detected from its content first, then from its name."""

import re
from pathlib import Path

from pyscf_ipu.molecule.files.framing import is_atom, is_count
from pyscf_ipu.molecule.files.opening import PACKED
from qm1b.errors import UserError
from qm1b.inputs import tables
from qm1b.inputs.container import Source, head_text

AUTO = "auto"

ID_FIRST = "id_smiles"
"""Lines of an id, a tab and a SMILES without a header, as PubChem's."""

REMARKS = {ID_FIRST: "the second column is read as SMILES, the first as id"}
"""What a user is told of some formats."""

SMILES = ("smiles", ID_FIRST, "table")
"""Formats in which no two records become conformers of one molecule: the second is a duplicate."""

GEOMETRIES = ("sdf", "xyz")
"""Formats with positions: nothing is embedded."""

NAMES = (*SMILES, *GEOMETRIES)

LOOKED_AT = 50
"""Lines at the beginning of a file that decide."""

_ATOM = r"\[[^\]]+\]|Br|Cl|[BCNOPSFIbcnops]"
_SMILES = re.compile(rf"(?:{_ATOM})(?:{_ATOM}|[-=#$:/\\.()%\d])*(?:\s.*)?")
"""What may be one, as far as its characters say, and what follows it."""

_SUFFIXES = {"table": (".csv", ".tsv"), "sdf": (".sdf", ".sd", ".mol"), "xyz": (".xyz", ".extxyz")}


def resolve(path: Path, input_format: str = AUTO) -> str:
    """The format of an input: smiles, id_smiles, table, sdf or xyz.

    With auto, an archive is read to its end: all its members must be of one format.

    Raises:
        UserError: the input cannot be read, is an archive of several formats, or `input_format` is
            not one of those or auto.
    """
    if input_format != AUTO:
        if input_format not in NAMES:
            raise UserError(
                f"unknown input format {input_format!r}: use one of {AUTO}, {', '.join(NAMES)}"
            )
        return input_format
    found: str | None = None
    with Source(path) as source:
        for member in source.members():
            theirs = detect(member.name, head_text(member))
            if not source.is_archive:
                return theirs
            if found not in (None, theirs) and member.head.strip():
                raise UserError(
                    f"archive {path} holds files of several formats (first {found}, but {theirs} "
                    f"in {member.name}); unpack it, or give --input-format"
                )
            found = found or theirs
    return found or "smiles"


def detect(name: str, text: str) -> str:
    """The format of a file with this name and this beginning."""
    lines = text.split("\n", LOOKED_AT)[:LOOKED_AT]
    if _is_xyz(lines):
        return "xyz"
    if re.search(r"^M  END|^\$\$\$\$|^.{33,34} V[23]000", text, flags=re.MULTILINE):
        return "sdf"
    if tables.delimiter_of(lines[0]):
        return "table"
    if _has_id_first(lines):
        return ID_FIRST
    base = name.lower()
    for packed in PACKED:
        base = base.removesuffix(packed)
    return next((found for found, ends in _SUFFIXES.items() if base.endswith(ends)), "smiles")


def _is_xyz(lines: list[str]) -> bool:
    """Whether there are a number of atoms, a comment and coordinates, perhaps below a title."""
    there = [line for line in lines if line.strip()]
    first = next((i for i, line in enumerate(there[:2]) if is_count(line)), None)
    if first is None:
        return False
    below = lines[lines.index(there[first]) + 2 :][:1]
    return bool(below) and is_atom(below[0])


def _has_id_first(lines: list[str]) -> bool:
    """Whether no line begins with a SMILES, and most have one behind their first tab."""
    cells = [line.split("\t", 2) for line in lines if line.strip()]
    second = [cell[1].strip() for cell in cells if len(cell) > 1]
    behind = sum(_SMILES.fullmatch(text) is not None for text in second)
    return 2 * behind > len(cells) and not any(_SMILES.fullmatch(cell[0].strip()) for cell in cells)
