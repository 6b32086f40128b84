"""The format of an input: detected from its content first, then from its name."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
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
    if input_format == AUTO:
        with opened(path) as (_, input_format):
            return input_format
    if input_format not in NAMES:
        raise UserError(
            f"unknown input format {input_format!r}: use one of {AUTO}, {', '.join(NAMES)}"
        )
    return input_format


@contextmanager
def opened(path: Path, input_format: str = AUTO) -> Iterator[tuple[Source, str]]:
    """An open input and its format; raises as `resolve`."""
    known = resolve(path, input_format) if input_format != AUTO else ""
    with Source(path) as source:
        yield source, known or _detected(source)


def _detected(source: Source) -> str:
    """The format of an open input, whose members are left to be read."""
    if not source.is_archive:
        return detect(source.path.name, head_text(source.head))
    kind: str | None = None
    with Source(source.path) as archive:
        for member in archive.members():
            theirs = detect(member.name, head_text(member.head))
            if kind not in (None, theirs) and member.head.strip():
                raise UserError(
                    f"archive {source.path} holds files of several formats (first {kind}, but "
                    f"{theirs} in {member.name}); unpack it, or give qm1b generate --input-format"
                )
            kind = kind or theirs
    return kind or "smiles"


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
    return next((kind for kind, ends in _SUFFIXES.items() if base.endswith(ends)), "smiles")


def _is_xyz(lines: list[str]) -> bool:
    """Whether there are a number of atoms, a comment and coordinates, perhaps below a title."""
    filled = [line for line in lines if line.strip()]
    first = next((i for i, line in enumerate(filled[:2]) if is_count(line)), None)
    if first is None:
        return False
    below = lines[lines.index(filled[first]) + 2 :][:1]
    return bool(below) and is_atom(below[0])


def _has_id_first(lines: list[str]) -> bool:
    """Whether no line begins with a SMILES, and most have one behind their first tab."""
    cells = [line.split("\t", 2) for line in lines if line.strip()]
    second = [cell[1].strip() for cell in cells if len(cell) > 1]
    behind = sum(_SMILES.fullmatch(text) is not None for text in second)
    return 2 * behind > len(cells) and not any(_SMILES.fullmatch(cell[0].strip()) for cell in cells)
