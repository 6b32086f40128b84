"""What the commands share at a terminal: how they end, what they show, tables of aligned text."""

import io
import os
import re
import sys
from collections.abc import Callable, Iterable

_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, those that change the direction of text, and halves of characters."""

EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def exit_code(name: str, run: Callable[[], int], *mistakes: type[Exception]) -> int:
    """Run a command; a user's mistake ends in its message on stderr, never in a traceback.

    Args:
        name: the command, which the message begins with.
        run: does the work, and returns the exit code.
        mistakes: the exceptions that tell users what to change.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file name need not be valid text
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            return run()
        finally:  # also after --help, which ends by SystemExit
            sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except mistakes as error:
        say(f"{name}: {error}", to_stderr=True)
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def visible(text: str, keep: str = "\n") -> str:
    """Text of any origin for a terminal: what would steer the terminal is shown as in Python.

    Args:
        text: may hold names from archives, SMILES, or comments of files.
        keep: control characters that stay as they are.
    """

    def escaped(found: re.Match[str]) -> str:
        return found[0] if found[0] in keep else found[0].encode("unicode_escape").decode()

    return _HIDDEN.sub(escaped, text)


def say(text: object, to_stderr: bool = False) -> None:
    """Print lines for people, and show them at once: logs are read while they are written."""
    print(visible(str(text)), file=sys.stderr if to_stderr else sys.stdout, flush=True)


def counted(number: int, thing: str) -> str:
    """A number of things that have a regular plural: 1 row, 2 rows."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def text_table(
    rows: Iterable[Iterable[object]], columns: str, gap: str = " ", indent: str = ""
) -> list[str]:
    """Lines of aligned columns, without spaces at their ends.

    Args:
        rows: cells of each row, written by `str`.
        columns: alignment and least width of each column, as in "<20 >12 >".
        gap: text between columns.
        indent: text before each line.

    Raises:
        ValueError: a row has more or fewer cells than there are columns.
    """
    aligned = columns.split()
    lines = [[visible(str(cell), keep="") for cell in row] for row in rows]
    for line in lines:
        if len(line) != len(aligned):
            raise ValueError(
                f"a row of {len(line)} cells in a table of {len(aligned)} columns: {line}"
            )
    formats = []
    for i, column in enumerate(aligned):
        widths = [int(column[1:] or 0), *(len(line[i]) for line in lines)]
        formats.append(f"{column[0]}{max(widths)}")
    return [(indent + gap.join(map(format, line, formats))).rstrip() for line in lines]
