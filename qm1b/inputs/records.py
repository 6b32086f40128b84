"""What every input format gives: one record per line, table row, SDF entry or XYZ frame."""

from typing import NamedTuple

from pyscf_ipu.molecule.files.opening import MAX_LINE

MAX_CHARACTERS = 2000
"""Of a SMILES: a molecule of 128 AOs has some 25 heavy atoms, each of a few characters.  Of longer
ones the beginning is kept."""


class Record(NamedTuple):
    """One molecule of the input, or why there is none: `reason` and `detail` are set then."""

    number: int = 0
    """From 1, through all members of an archive; 0 before the records are counted."""
    smiles: str = ""
    """As the input has it; "" if it has none."""
    block: str = ""
    """The whole text of an SDF entry or an XYZ frame."""
    reason: str = ""
    detail: str = ""
    format: str = "smiles"
    id: str = ""
    """Its name in the input, as `qm1b.inputs.ids` reads it; "" if it has none."""


TOO_LONG = Record(reason="too_long", detail=f"a line of more than {MAX_LINE} characters")


def smiles_of(text: str) -> str:
    """The SMILES of a line or cell: its first word, with its CXSMILES extension if there is one.

    The extension may say that an atom is a radical, so leaving it out would change the molecule.
    """
    return smiles_and_rest(text)[0]


def smiles_and_rest(text: str) -> tuple[str, str]:
    """The SMILES, and what follows it."""
    columns = text.split(None, 1)
    if not columns:
        return "", ""
    rest = columns[1] if len(columns) > 1 else ""
    extension = rest[: rest.find("|", 1) + 1] if rest.startswith("|") else ""
    if rest.startswith("|") and not extension and "^" in rest:
        extension = rest  # a table's comma cut it: RDKit refuses it, as radicals would be lost
    if extension:
        extended = f"{columns[0]} {extension}"
        return extended[: MAX_CHARACTERS + 1], rest.removeprefix(extension)
    return columns[0][: MAX_CHARACTERS + 1], text.lstrip()[len(columns[0]) :]
