"""Help of options flows: line breaks of the source are not those of the terminal."""

from dataclasses import dataclass, field, fields

import pytest

from pyscf_ipu.commands.help_text import field_texts, flowing, with_flowing_help
from qm1b.cli import main


@dataclass(frozen=True)
class Inner:
    """Options inside."""

    depth: int = 1
    """How deep it is, in a text that goes on
    in another line."""


@dataclass(frozen=True)
class Outer:
    """Options outside."""

    one: int = field(default=0, metadata={"added": "1.0"})
    """First line
    second line.

    Another
    paragraph."""
    two: int = 0
    inner: Inner = Inner()
    """The level."""


def test_paragraphs_flow():
    assert flowing("a\n    b\n\n    c\n    d") == "a b\n\nc d"
    assert field_texts(Outer)["inner"] == "The level."
    assert "two" not in field_texts(Outer)
    with_flowing_help({"outer": Outer})
    help_of = {f.name: dict(f.metadata) for f in (*fields(Outer), *fields(Inner))}
    assert help_of["one"] == {
        "added": "1.0",
        "help": "First line second line.\n\nAnother paragraph.",
    }
    assert help_of["two"] == {}
    assert help_of["depth"] == {"help": "How deep it is, in a text that goes on in another line."}


def test_no_line_ends_early(capsys):
    with pytest.raises(SystemExit):
        main(["generate", "--help"])
    text = " ".join(line.strip("│ ") for line in capsys.readouterr().out.splitlines())
    assert "SDF, XYZ or extended XYZ with geometries" in " ".join(text.split())
