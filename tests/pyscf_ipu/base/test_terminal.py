"""How a command ends, what it shows, and tables of aligned text."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ways_to_print import WAYS, WORK

from pyscf_ipu.base.errors import MISTAKES, UsageError
from pyscf_ipu.base.terminal import counted, exit_code, say, text_table, visible


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        *((mistake("no such basis"), 2, "name: no such basis\n") for mistake in MISTAKES),
        (ValueError("zip() argument 2 is longer than argument 1"), None, ""),
        (ImportError("cannot import name 'rks'"), None, ""),
        (KeyError("a mistake of this project"), None, ""),
        (KeyboardInterrupt(), 130, "name: interrupted\n"),
    ],
)
def test_only_a_users_mistakes_lose_their_traceback(error, code, message, capsys):
    def run():
        raise error

    if code is None:
        with pytest.raises(type(error)):
            exit_code("name", lambda: run)
    else:
        assert exit_code("name", lambda: run) == code
    assert capsys.readouterr().err == message


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENAMETOOLONG, "too long", "a" * 300), "aa: too long; .* 255 bytes: give a"),
        (OSError(errno.EMFILE, "too many"), "^x: too many; allow more files .*ulimit -n 1024"),
    ],
)
def test_a_limit_of_the_system_is_one_sentence(capsys, error, words):
    def parse():
        raise error

    assert exit_code("x", parse) == 2
    said = capsys.readouterr().err
    assert re.search(words, said)
    assert said.count("\n") == 1


def test_a_command_decides_its_own_exit_code():
    assert exit_code("name", lambda: lambda: 1) == 1


NOBODY_READS = "a pipe"
SCRIPT = [sys.executable, str(Path(__file__).parents[1] / "ways_to_print.py")]


def printed(tmp_path, kind, redirection):
    """Exit code and end of the work of each way of printing, and what was printed all the same."""
    codes = tmp_path / "codes.json"
    line = ["bash", "-c", f'"$@" {redirection}', "bash", *SCRIPT, str(codes), kind]
    reader, writer = os.pipe()
    if redirection == NOBODY_READS:
        os.close(reader)
        line, reader = [*SCRIPT, str(codes), kind], None
    found = subprocess.run(
        line,
        stdout=writer if reader is None else subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    for descriptor in filter(None, (reader, writer)):
        os.close(descriptor)
    return json.loads(codes.read_text()), found


@pytest.mark.parametrize(
    ("redirection", "code", "reason"),
    [
        (">/dev/full", 1, "No space left on device"),
        (">&-", 1, "it is closed"),
        (NOBODY_READS, 141, None),
    ],
)
def test_a_result_that_cannot_be_printed_ends_the_command(redirection, code, reason, tmp_path):
    codes, found = printed(tmp_path, "result", redirection)
    assert codes == {way: [code, False] for way in WAYS}
    lines = found.stderr.splitlines()
    assert len(lines) == (0 if reason is None else len(WAYS)), found.stderr
    for way, line in zip(WAYS, lines, strict=False):
        assert line.startswith(f"{way}: nothing can be printed on standard output ({reason})")


@pytest.mark.parametrize(
    ("redirection", "reason"),
    [
        (">/dev/full", "No space left on device"),
        (">&-", "it is closed"),
        (NOBODY_READS, "Broken pipe"),
    ],
)
def test_the_work_goes_on_without_its_log(redirection, reason, tmp_path):
    codes, found = printed(tmp_path, "log", redirection)
    assert codes == {way: [WORK, True] for way in WAYS}
    lines = found.stderr.splitlines()
    assert len(lines) == len(WAYS), found.stderr
    for way, line in zip(WAYS, lines, strict=True):
        assert line.startswith(f"{way}: the work goes on, but nothing can be printed")
        assert f"({reason})" in line


@pytest.mark.parametrize("place", ["/dev/full", "&-"])
def test_nobody_needs_standard_error(place, tmp_path):
    codes, found = printed(tmp_path, "result", f"2>{place}")
    assert codes == {way: [WORK, True] for way in WAYS}
    assert found.stdout.count("a second line") == len(WAYS)
    code = (
        "import sys; from pyscf_ipu.base.terminal import *\n"
        "from pyscf_ipu.base.errors import UsageError\n"
        "def run(): raise UsageError('no such basis')\n"
        "sys.exit(exit_code('x', lambda: run))"
    )
    line = f'"$@" 2>{place}'
    found = subprocess.run(
        ["bash", "-c", line, "bash", sys.executable, "-c", code], capture_output=True, check=False
    )
    assert (found.returncode, found.stdout) == (2, b"")


def test_a_file_does_not_get_the_number_of_a_closed_stream(tmp_path):
    """Else what others print would stand in it."""
    code = (
        "import os, subprocess, sys; from pyscf_ipu.base.terminal import exit_code\n"
        "def run():\n"
        "    with open(sys.argv[1], 'w') as file:\n"
        "        assert file.fileno() > 2\n"
        "        os.system('echo noise; echo noise >&2')\n"
        "        subprocess.run([sys.executable, '-c', sys.argv[2]])\n"
        "    return 5\n"
        "sys.exit(exit_code('x', lambda: run))"
    )
    path, others = tmp_path / "file", [tmp_path / str(n) for n in range(3)]
    child = (
        f"import os; files = [open(name, 'w') for name in {list(map(str, others))}]\n"
        "for number in 1, 2:\n"
        "    try: os.write(number, b'noise')\n"
        "    except OSError: pass\n"
    )
    line = '"$@" <&- >&- 2>&-'
    found = subprocess.run(
        ["bash", "-c", line, "bash", sys.executable, "-c", code, str(path), child], check=False
    )
    assert (found.returncode, path.read_text()) == (5, "")
    assert [other.read_text() for other in others] == ["", "", ""]


def test_a_table_is_as_wide_as_its_cells_and_at_least_as_asked_for():
    rows = [("name", "n", "of"), ("a longer name", 12, "two\nlines"), ("x", 3, "")]
    assert text_table(rows, "<6 >4 <", gap="  ", indent=" ") == [
        " name              n  of",
        " a longer name    12  two\\nlines",
        " x                 3",
    ]
    assert text_table([], "<6 >4") == []


HOSTILE = "a\x1b[31mred\x07\x9b2J\u202egnp.exe\r\nnext\ttab"


def test_control_characters_are_made_visible(capsys):
    shown = visible(HOSTILE)
    assert shown == "a\\x1b[31mred\\x07\\x9b2J\\u202egnp.exe\\r\nnext\\ttab"
    assert visible(HOSTILE, keep="").isprintable()
    assert visible(plain := "C/C=C\\F, é, 東京, ☃, [Na+]") == plain
    (line,) = text_table([(HOSTILE, 1)], "< <")
    assert line.isprintable()
    say(HOSTILE)
    assert capsys.readouterr().out == f"{shown}\n"

    def mistake():
        raise UsageError(f"archive member {HOSTILE}")

    assert exit_code("x", lambda: mistake) == 2
    assert capsys.readouterr().err == f"x: archive member {shown}\n"


def test_one_of_a_thing_is_not_several():
    assert [counted(n, "row") for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
