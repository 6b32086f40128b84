"""What the commands share at a terminal: how they end, what they show, tables of aligned text."""

import functools
import io
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

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


@contextmanager
def stderr_without(pattern: bytes) -> Iterator[None]:
    """Hold back the lines that libraries in C++ write to stderr, if they match a pattern.

    All others go on to stderr; so do those of a process started inside, for as long as it lives.
    One thread at a time is inside.
    """
    with _one_stderr():
        try:
            outside = os.dup(2)
        except OSError:  # there is none
            yield
            return
        if sys.stderr:
            sys.stderr.flush()
        reading, writing = os.pipe()
        os.dup2(writing, 2)
        os.close(writing)
        all_of_it = threading.Event()
        task = (reading, outside, re.compile(pattern), all_of_it)
        threading.Thread(target=_pass_on, args=task, daemon=True).start()
        try:
            yield
        finally:
            os.write(2, _END)
            all_of_it.wait()
            os.dup2(outside, 2)


_END = b"\0end of the filtered text\0"


@functools.cache
def _one_stderr() -> threading.Lock:
    """A process has one stderr."""
    return threading.Lock()


def _pass_on(
    reading: int, outside: int, pattern: re.Pattern[bytes], all_of_it: threading.Event
) -> None:
    """Copy lines from a pipe to where stderr led, until nobody can write to the pipe any more."""
    text = b""
    while data := os.read(reading, 1 << 16):
        if all_of_it.is_set():
            os.write(outside, data)
            continue
        before, end, after = (text + data).partition(_END)
        lines = before.splitlines(keepends=True)
        text = b"" if end or before.endswith(b"\n") else lines.pop()
        for line in lines:
            if not pattern.search(line):
                os.write(outside, line)
        if end:
            os.write(outside, after)
            all_of_it.set()
    os.close(reading)
    os.close(outside)


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
