"""How tyro shows and reads dataclasses."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from pyscf_ipu.base.command_line.options import field_texts
from pyscf_ipu.base.command_line.parse import command
from pyscf_ipu.base.errors import UsageError


@dataclass(frozen=True)
class Inner:
    """Options inside."""

    depth: int = 1
    """How deep it is, in a text that goes on
    in another line."""


@dataclass(frozen=True)
class Base:
    """Has options, too."""

    one: int = field(default=0, metadata={"added": "1.0"})
    """First line
    second line.

    Another
    paragraph."""


@dataclass(frozen=True)
class Outer(Base):
    """Options outside."""

    groups: ClassVar = {"how fast": "speed size flag"}

    two: int = 0
    inner: Inner = Inner(3)
    speed: float | None = None
    """Of light."""
    size: int | tuple[int, int] = 5
    kind: bool | Literal["mixed"] | None = None
    flag: bool | None = None
    file: Path | None = None
    paths: tuple[Path, ...] = ()
    names: list[str] = field(default_factory=list)


def parsed(line, default=None):
    return command(Outer, "outer", line.split(), default)


def test_paragraphs_flow():
    assert field_texts(Outer) == {"speed": "Of light."}
    assert field_texts(Base) == {"one": "First line second line.\n\nAnother paragraph."}


def test_values_reach_their_fields():
    assert parsed("") == Outer()
    given = "--one 7 --two 8 --depth 9 --speed 1e3 --size 1 2 --kind mixed --no-flag"
    want = Outer(7, 8, Inner(9), 1000.0, (1, 2), "mixed", False)
    assert parsed(given) == want
    assert parsed("--one 6", want) == Outer(6, 8, Inner(9), 1000.0, (1, 2), "mixed", False)
    assert parsed("--kind True --size 4 --flag") == Outer(kind=True, size=4, flag=True)
    paths = (Path("a"), Path("b"))
    assert parsed("--names x y --paths a b") == Outer(names=["x", "y"], paths=paths)


def test_help_has_groups_and_no_none(capsys):
    with pytest.raises(SystemExit, match="0"):
        parsed("--help")
    text = capsys.readouterr().out
    assert "None" not in text
    assert text.index("Options outside.") < text.index("First line second line.")
    assert (
        text.index("inner options") < text.index("how fast options") < text.index("--size INT or")
    )
    assert "in a text that goes on in another line. (default: 3)" in " ".join(
        word for word in text.split() if word != "│"
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--speed fast", "--speed: 'fast' is not a number"),
        ("--two 1.5", "--two: '1.5' is not a whole number"),
        ("--size x", "--size: 'x' is not a whole number"),
        ("--size 1 2 3", "--size: '1 2 3' is not INT or INT INT"),
        ("--kind none", "invalid choice 'none'"),
        ("--names", "it names nothing: give one word or more"),
    ],
)
def test_a_wrong_value_is_told_without_words_of_python(line, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        parsed(line)
    err = capsys.readouterr().err
    assert words in err
    assert "<class" not in err


@pytest.mark.parametrize("words", [["--file="], ["--file", ""]])
def test_an_empty_value_is_refused(words):
    with pytest.raises(UsageError, match=r"^--file is empty: give a value"):
        command(Outer, "outer", words)
