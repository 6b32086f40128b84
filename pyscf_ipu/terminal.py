"""What the four commands share at a terminal: how they end, and tables of aligned text."""

import io
import os
import sys
from collections.abc import Callable, Iterable

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
        code = run()
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except mistakes as error:
        print(f"{name}: {error}", file=sys.stderr)
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


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
    lines = [[str(cell).replace("\n", "\\n") for cell in row] for row in rows]
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
