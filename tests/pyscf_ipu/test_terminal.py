"""How a command ends, what it shows, and tables of aligned text."""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyscf_ipu.terminal import exit_code, say, stderr_without, text_table, visible


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("no such basis"), 2, "name: no such basis\n"),
        (KeyError("a mistake of this project"), None, ""),
        (KeyboardInterrupt(), 130, "name: interrupted\n"),
    ],
)
def test_only_a_users_mistakes_lose_their_traceback(error, code, message, capsys):
    def run():
        raise error

    if code is None:
        with pytest.raises(type(error)):
            exit_code("name", run, ValueError)
    else:
        assert exit_code("name", run, ValueError) == code
    assert capsys.readouterr().err == message


def test_a_command_decides_its_own_exit_code():
    assert exit_code("name", lambda: 1) == 1


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
        raise ValueError(f"archive member {HOSTILE}")

    assert exit_code("x", mistake, ValueError) == 2
    assert capsys.readouterr().err == f"x: archive member {shown}\n"


def test_matching_lines_of_stderr_are_held_back(capfd):
    with stderr_without(rb"^noise \d+"):
        os.write(2, b"one\nnoise 1 and more\n")
        os.write(2, b"half ")
        os.write(2, b"a line\nnoise 2\nno noise\n")
        child = subprocess.Popen(["sh", "-c", "sleep 0.5; echo later >&2"])
    os.write(2, b"after\n")
    child.wait()
    time.sleep(0.2)
    assert capfd.readouterr().err.splitlines() == [
        "one",
        "half a line",
        "no noise",
        "after",
        "later",
    ]


def test_stderr_is_back_after_an_error(capfd):
    with pytest.raises(ValueError, match="inside"), stderr_without(b"noise"):
        raise ValueError("inside")
    os.write(2, b"noise\n")
    assert capfd.readouterr().err == "noise\n"


def test_threads_take_turns_at_stderr(capfd):
    def work(i):
        with stderr_without(b"noise"):
            os.write(2, f"noise\n{i}\n".encode())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(20)))
    assert sorted(map(int, capfd.readouterr().err.split())) == [*range(20)]
