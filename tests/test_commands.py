"""Every console script and every subcommand, as tyro knows them: alone, and with mistakes.

A new subcommand, and a new script of the project, is in these tests by itself.
"""

import io
import re
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

import pytest

SCRIPTS = {
    one.name: one
    for one in entry_points(group="console_scripts")
    if one.value.split(".")[0] in ("pyscf_ipu", "qm1b", "schnet")
}
NOWHERE = "no/such/file.xyz"
BOX = re.compile(r"^╭─ (.+?) ─+╮$(.*?)^╰", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^│ (\S.*?)(?=^│ \S|\Z)", re.MULTILINE | re.DOTALL)
MOST_OPTIONS = 15
"""Options of a group; more in a box are not found by eye."""

scripts = pytest.mark.parametrize(
    "script", sorted({x.value: x.name for x in SCRIPTS.values()}.values())
)


class Argument(NamedTuple):
    """What the help says of an argument; its name is "" if it has a place instead."""

    name: str
    value: str
    required: bool
    box: str


@pytest.fixture
def run(script, monkeypatch, tmp_path):
    """Run the script in this process; returns exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    main = SCRIPTS[script].load()

    def run(*words):
        streams = [io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2)]
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            try:
                code = main([word for word in words if word])
            except SystemExit as end:
                code = end.code
            for stream in streams:
                stream.flush()
        return code, *(stream.buffer.getvalue().decode() for stream in streams)

    return run


@pytest.fixture(scope="module")
def seen():
    """The commands of the scripts whose help was read."""
    return {}


@pytest.fixture
def commands(script, run, seen):
    """The subcommands of the script, and their arguments, as the help has them."""
    if script not in seen:
        _, out, _ = run("--help")
        several = re.match(r"usage: \S+ \[-h\] \{([\w,-]+)\}\n", out)
        names = several[1].split(",") if several else [""]
        seen[script] = {name: list(arguments(run(name, "--help")[1])) for name in names}
    return seen[script]


def arguments(text):
    """Read a help."""
    for box, lines in BOX.findall(text):
        for entry in ENTRY.findall(lines):
            first = re.split(r"\s{2,}|\n", entry)[0].rstrip(" │")
            required = "(required)" in entry
            if box == "positional arguments":
                yield Argument("", first, required, box)
            elif first.startswith("--"):
                name, _, value = first.split(", ")[0].partition(" ")
                yield Argument(name, value, required, box)


def needed(found, value):
    """The words that a command line must have, each with a value."""
    words = []
    for one in found:
        if one.required:
            choices = re.findall(r"^\{([\w-]+)", one.value)
            words += [one.name, *(choices or [value])]
    return words


def is_a_sentence(script, err):
    return err.startswith(f"{script.lower()}: ") and err.count("\n") == 1


@scripts
def test_alone_a_script_prints_its_help(script, run, commands):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out.startswith("usage: ")
    assert all(name in out for name in commands)


@scripts
def test_help_is_for_people(script, run, commands):
    for name, found in commands.items():
        code, out, err = run(name, "--help")
        assert (code, err) == (0, ""), name
        assert re.match(r"usage: .*\n\n[A-Z].*\.", out), f"{name}: what it is for"
        for words in ("None}", "(default: None)", "(default: )"):
            assert words not in out, name
        assert not re.search(r"[\s(]/\w", out), f"{name}: an absolute path"
        boxes = Counter(one.box for one in found)
        assert max(boxes.values(), default=0) <= MOST_OPTIONS, (name, boxes)


@scripts
def test_alone_a_command_says_what_it_needs(script, run, commands):
    for name, found in commands.items():
        lacking = [one for one in found if one.required]
        if name and lacking:
            code, out, err = run(name)
            assert (code, out) == (2, ""), name
            assert f"{name} --help" in err
            assert any((one.name or one.value) in err for one in lacking), (name, err)


@scripts
def test_an_unknown_option_is_named_with_the_nearest(script, run, commands):
    for name, found in commands.items():
        words = needed(found, NOWHERE)
        near = [one.name for one in found if len(one.name) > 6][:1]
        code, _, err = run(name, *words, "--no-such-option", *(option[:-1] for option in near))
        assert code == 2, name
        assert "--no-such-option" in err
        for option in near:
            assert re.search(rf"^│ +{option}\b", err, re.MULTILINE), (name, option, err)


@scripts
def test_a_missing_file_is_one_sentence(script, run, commands):
    for name, found in commands.items():
        must = needed(found, NOWHERE)
        lines = [must]
        if any(not one.name and not one.required for one in found):
            lines = [[NOWHERE, *must]]
        elif all(one.name for one in found):
            paths = [one.name for one in found if re.search("PATH|FILE", one.value)]
            lines = [[*must, path, f"{NOWHERE}.json"] for path in paths if path not in must]
        for line in lines:
            code, out, err = run(name, *line)
            assert (code, out) == (2, ""), (name, line, err)
            assert is_a_sentence(script, err), (name, line, err)
            assert "no/such" in err or "give --" in err or "no data" in err, (line, err)


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_the_installed_scripts_start(script):
    path = Path(sys.executable).with_name(script)
    found = subprocess.run([path], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("usage: ")
