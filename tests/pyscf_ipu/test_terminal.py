"""How a command ends, what it shows, and tables of aligned text."""

import pytest

from pyscf_ipu.terminal import counted, exit_code, say, text_table, visible


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


def test_one_of_a_thing_is_not_several():
    assert [counted(n, "row") for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
