"""The format of an input: detected from its content first, then from its name."""

import re
from pathlib import Path

from qm1b.errors import UserError
from qm1b.inputs import tables
from qm1b.inputs.container import PACKED, Source, head_text

AUTO = "auto"

SMILES = ("smiles", "table")
"""Formats in which no two records become conformers of one molecule: the second is a duplicate."""

GEOMETRIES = ("sdf", "xyz")
"""Formats with positions: nothing is embedded."""

NAMES = (*SMILES, *GEOMETRIES)

_SUFFIXES = {"table": (".csv", ".tsv"), "sdf": (".sdf", ".sd", ".mol"), "xyz": (".xyz", ".extxyz")}


def resolve(path: Path, input_format: str = AUTO) -> str:
    """The format of an input: smiles, table, sdf or xyz.

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
    lines = text.split("\n", 8)
    if _is_xyz(lines):
        return "xyz"
    if re.search(r"^M  END|^\$\$\$\$|^.{33,34} V[23]000", text, flags=re.MULTILINE):
        return "sdf"
    if tables.delimiter_of(lines[0]):
        return "table"
    base = name.lower()
    for packed in PACKED:
        base = base.removesuffix(packed)
    return next((found for found, ends in _SUFFIXES.items() if base.endswith(ends)), "smiles")


def _is_xyz(lines: list[str]) -> bool:
    """Whether the first line is a number of atoms, and the third has three coordinates."""
    if len(lines) < 3 or not re.fullmatch(r"\s*\d+\s*", lines[0]):
        return False
    coordinates = re.findall(r"(?<!\S)[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?(?!\S)", lines[2])
    return len(coordinates) >= 3
