"""Progress in a log and on a terminal."""

import io
from dataclasses import dataclass

import pytest
from rich.console import Console

from qm1b.process.display import Bar, Plain, Shown, time_left


@dataclass(frozen=True)
class State:
    rows: int = 3
    expected: int = 12
    pace: str = "3/12 [red]rows[/red]"
    notes: tuple[str, ...] = ("one note",)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(None, "-:--:--"), (0.0, "0:00:00"), (3661.9, "1:01:01"), (1e6, "277:46:40")],
)
def test_time_left(seconds, expected):
    assert time_left(seconds) == expected


def test_a_log_gets_a_line_when_it_is_time(capsys):
    assert isinstance(State(), Shown)
    with Plain(0.0, stderr=True) as often, Plain(1e9) as never:
        often.update(State())
        never.update(State())
        never.say("resuming")
    out, err = capsys.readouterr()
    assert err == "3/12 [red]rows[/red]; one note\n"
    assert out == "resuming\n"


def test_a_terminal_shows_text_as_it_is():
    """Rich's markup in a name, such as a folder's, stays text."""
    file = io.StringIO()
    with Bar(Console(file=file, force_terminal=True, width=80)) as bar:
        bar.say("resuming runs/[bold]")
        bar.update(State())
    shown = file.getvalue()
    assert "runs/[bold]" in shown
    assert "[red]rows[/red]" in shown
    assert "one note" in shown
