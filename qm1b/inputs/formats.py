"""Which format a text is in: by its beginning first, by its name where that says nothing."""

from __future__ import annotations

import re

from . import tables

AUTO = "auto"

SMILES = ("smiles", "table")
"""Formats in which two records are never of one molecule: the second is a duplicate."""

GEOMETRIES = ("sdf", "xyz")
"""Formats that bring positions: nothing is embedded."""

NAMES = (*SMILES, *GEOMETRIES)

_SUFFIXES = {
    ".csv": "table",
    ".tsv": "table",
    ".sdf": "sdf",
    ".sd": "sdf",
    ".mol": "sdf",
    ".xyz": "xyz",
    ".extxyz": "xyz",
}


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
    for packed in (".gz", ".bz2", ".xz"):
        base = base.removesuffix(packed)
    return next((found for end, found in _SUFFIXES.items() if base.endswith(end)), "smiles")


def _is_xyz(lines: list[str]) -> bool:
    """A number of atoms alone on the first line, and three coordinates on the third."""
    if len(lines) < 3 or not re.fullmatch(r"\s*\d+\s*", lines[0]):
        return False
    coordinates = re.findall(r"(?<!\S)[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?(?!\S)", lines[2])
    return len(coordinates) >= 3
