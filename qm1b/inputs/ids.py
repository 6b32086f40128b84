"""Ids: the name that a record has in the input, where each format keeps one.

Whose name it is only the input's owner knows, so it decides nothing: neither seeds nor duplicates.
It is somebody else's text, and becomes one line of printable characters.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pyscf_ipu.molecule.files.xyz import comment_keys
from qm1b.errors import UserError

MAX_ID_CHARACTERS = 200
"""Longer ids are cut; those of databases have some 20 characters."""

ID_NAMES = tuple(
    "id molid moleculeid compoundid cmpdid cid chemblid moleculechemblid cmpdchemblid zincid "
    "pubchemid pubchemcid pubchemcompoundcid drugbankid catalogid idnumber identifier "
    "name molname moleculename compoundname title".split()
)
"""Names of a column, data field or key of ids as `plain` gives them, the most likely first."""

_DATA_FIELD = re.compile(r">.*?<([^>]*)>")


@lru_cache(maxsize=1024)
def plain(name: str) -> str:
    """A name in lower case, without anything but letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def id_of(text: str) -> str:
    """A text as an id: other characters than printable ones become spaces; cut if it is long."""
    shown = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    return shown.strip()[:MAX_ID_CHARACTERS].rstrip()


def after_smiles(rest: str) -> str:
    """The id in what follows a SMILES on its line: up to the next tab, as in GDB's files."""
    return id_of(rest.lstrip(" ").removeprefix("\t").split("\t", 1)[0])


def of_column(header: Sequence[str], asked: str | None) -> int | None:
    """The column of the ids in a table; None if no name is one of ID_NAMES.

    Args:
        header: the names of the columns.
        asked: a name, or a number from 1.

    Raises:
        UserError: there is no such column.
    """
    if asked is None:
        return _place(header, ID_NAMES)
    place = _place(header, [asked])
    if place is None and asked.isdecimal() and 1 <= int(asked) <= len(header):
        return int(asked) - 1
    if place is None:
        names = ", ".join(cell.strip() for cell in header[:20])
        raise UserError(f"the table has no column {asked!r}; --id-column may be: {names}")
    return place


def of_column_number(asked: str | None) -> int | None:
    """The column of the ids in a table without a header.

    Raises:
        UserError: it is not a number from 1.
    """
    if asked is None:
        return None
    if asked.isdecimal() and int(asked):
        return int(asked) - 1
    raise UserError(
        f"--id-column is {asked!r}, but the table has no header, since --smiles-column is a "
        "number: give a number for both"
    )


def of_sdf(lines: Sequence[str], asked: str | None) -> str:
    """The id of an SDF entry: its title, which is the first line, else a data field."""
    title = id_of(lines[0]) if lines else ""
    if title and asked is None:
        return title
    matches = ((i, _DATA_FIELD.match(line)) for i, line in enumerate(lines) if line[:1] == ">")
    fields = {match[1]: i + 1 for i, match in matches if match and i + 1 < len(lines)}
    place = _place(list(fields), ID_NAMES if asked is None else [asked])
    return "" if place is None else id_of(lines[list(fields.values())[place]])


def of_comment(comment: str, asked: str | None) -> str:
    """The id of a frame: a key of its comment; QM9's comments begin with "gdb 1"."""
    if asked is None and comment.startswith("gdb "):
        return id_of(" ".join(comment.split()[:2]))
    keys = comment_keys(comment) if "=" in comment else {}
    place = _place(list(keys), ID_NAMES if asked is None else [asked])
    return "" if place is None else id_of(list(keys.values())[place])


def _place(names: Sequence[str], wanted: Iterable[str]) -> int | None:
    """Where the first of the wanted names stands, to the letter if possible."""
    stripped, bare = [name.strip() for name in names], [plain(name) for name in names]
    for one in wanted:
        for among, name in ((stripped, one.strip()), (bare, plain(one))):
            if name and name in among:
                return among.index(name)
    return None
