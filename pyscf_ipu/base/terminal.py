"""What the commands share at a terminal: how they end, what they show, tables of aligned text."""

import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import FileIO, TextIOBase, TextIOWrapper
from typing import TextIO, cast

from pyscf_ipu.base.errors import MISTAKES

_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, those that change the direction of text, and halves of characters."""

EXIT_NOT_PRINTED = 1
EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


LIMITS = {
    errno.ENAMETOOLONG: "the name of a file or folder may have 255 bytes: give a shorter one",
    errno.EMFILE: "allow more files in this shell (`ulimit -n 1024`), and run it again",
    errno.ENFILE: "the machine has no more: end other programs, and run it again",
}
"""What to do about limits of the system, which any file may meet."""


class NotPrinted(Exception):
    """The result of a command could not be printed."""


class Stream:
    """A stream that fails at most once: what is written later is discarded.

    Args:
        stream: the stream itself.
        failed: is told of the failure, and may raise.
    """

    def __init__(self, stream: TextIOBase, failed: Callable[[OSError], None]) -> None:
        self._stream = stream
        self._failed = failed

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text."""
        self._try(lambda: self._stream.write(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Hand to the system what was written."""
        self._try(self._stream.flush)

    def close(self) -> None:
        """Hand over what was written, and close."""
        self.flush()
        try:
            self._stream.close()
        except OSError as error:
            self._failed(error)

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            self._failed(error)


def exit_code(name: str, parse: Callable[[], Callable[[], int]]) -> int:
    """Run a command; a user's mistake ends in its message on stderr, never in a traceback.

    What a command prints is its result: if it cannot be printed, the command ends.  Where it is
    only a log, which `stdout_is_log` of the command says, the work goes on.

    Args:
        name: the command, which the message begins with.
        parse: reads the command line; what it returns does the work, and returns the exit code.
    """
    is_log = False

    def failed(error: OSError) -> None:
        reason = "it is closed" if error.errno == errno.EBADF else error.strerror
        what = f"nothing can be printed on standard output ({reason}): send it to another place"
        if not is_log:
            raise NotPrinted(what) from error
        say(f"{name}: the work goes on, but {what}", to_stderr=True)

    with _standard_streams(failed):
        try:
            try:
                command = parse()
                is_log = getattr(command, "stdout_is_log", False)
                return command()
            finally:  # also after --help, which ends by SystemExit
                sys.stdout.flush()
        except (*MISTAKES, NotPrinted) as error:
            if isinstance(error.__cause__, BrokenPipeError):  # the reader has seen enough
                return EXIT_BROKEN_PIPE
            say(f"{name}: {error}", to_stderr=True)
            return EXIT_NOT_PRINTED if isinstance(error, NotPrinted) else EXIT_USER_ERROR
        except OSError as error:
            if error.errno not in LIMITS:
                raise
            what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
            say(f"{name}: {what}; {LIMITS[error.errno]}", to_stderr=True)
            return EXIT_USER_ERROR
        except KeyboardInterrupt:
            say(f"{name}: interrupted", to_stderr=True)
            return EXIT_INTERRUPTED


@contextmanager
def _standard_streams(failed: Callable[[OSError], None]) -> Iterator[None]:
    """Standard streams that fail at most once; nobody is told when standard error does."""
    usual = sys.stdout, sys.stderr
    out, err = (_opened(stream, number) for number, stream in enumerate(usual, 1))
    sys.stdout = cast("TextIO", Stream(out, failed))
    sys.stderr = cast("TextIO", Stream(err, lambda _: None))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = usual


def _opened(stream: object, number: int) -> TextIOBase:
    """A stream that shows every text; one that was closed from the start fails like a broken one.

    Its number is taken at once: otherwise the next file that is opened would have it, and would
    receive what others print.
    """
    if stream is None:
        while (descriptor := os.open(os.devnull, os.O_RDONLY)) < number:
            pass
        os.set_inheritable(descriptor, True)
        stream = TextIOWrapper(FileIO(descriptor, "w", closefd=False), "utf-8")
    if isinstance(stream, TextIOWrapper):  # a file name need not be valid text
        stream.reconfigure(errors="backslashreplace")
    return cast("TextIOBase", stream)


def visible(text: str, keep: str = "\n") -> str:
    """Text of any origin for a terminal: what would steer the terminal is shown as in Python.

    Args:
        text: may hold names from archives, SMILES, or comments of files.
        keep: control characters that stay as they are.
    """

    def escaped(match: re.Match[str]) -> str:
        return match[0] if match[0] in keep else match[0].encode("unicode_escape").decode()

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
