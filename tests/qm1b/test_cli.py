"""The command: settings from flags, and one sentence for a user's mistake."""

import os
import subprocess
import sys
from contextlib import nullcontext, redirect_stdout
from functools import partial
from pathlib import Path

import pytest
from fake_runs import FAKE
from threads import Threads

import qm1b
from qm1b.cli import main
from qm1b.commands.generate import Generate, run_settings
from qm1b.errors import UserError
from qm1b.process import worker
from qm1b.run.generate import Run


def test_flags_override_the_preset():
    assert [run_settings(Generate(cart=c)).level.cart for c in (True, False, "6d7f", None)] == [
        True,
        False,
        "6d7f",
        False,
    ]
    settings = run_settings(Generate(basis="6-31g", conformers=7))
    assert (settings.level.basis, settings.level.xc, settings.conformers) == ("6-31g", "b3lyp5", 7)
    assert settings.fingerprint != run_settings(Generate()).fingerprint
    assert run_settings(Generate(workers=3)).fingerprint == run_settings(Generate()).fingerprint


@pytest.mark.parametrize("field", ["conformers", "max_aos", "limit"])
def test_numbers_out_of_range(field):
    with pytest.raises(UserError, match="must be at least 1"):
        run_settings(Generate(**{field: 0}))


@pytest.mark.parametrize("field", ["seed", "max_aos", "limit"])
def test_numbers_that_a_file_cannot_hold(field):
    with pytest.raises(UserError, match=r"below 2\*\*63"):
        run_settings(Generate(**{field: 2**63}))


def test_functionals_are_named_in_small_letters():
    assert (
        run_settings(Generate(xc="HF")).fingerprint == run_settings(Generate(xc="hf")).fingerprint
    )


@pytest.mark.parametrize("value", ["inf", "nan", "-inf"])
@pytest.mark.parametrize("flag", ["--embed-timeout", "--rattle-angstrom", "--audit"])
def test_no_flag_takes_what_is_no_number(tmp_path, capsys, flag, value):
    out = tmp_path / "out"
    assert main(["generate", "--out", str(out), f"{flag}={value}"]) == 2
    message = capsys.readouterr().err
    assert flag in message
    assert message.count("\n") == 1
    assert not out.exists()


def test_mistakes_are_one_sentence(tmp_path, capsys):
    empty = tmp_path / "empty.smi"
    empty.touch()
    out = str(tmp_path / "out")
    cases = [
        (["generate", str(tmp_path / "none.smi"), "--out", out], "does not exist"),
        (["generate", str(empty), "--out", out], "is empty"),
        (["generate", "--out", out, "--conformers", "0"], "at least 1"),
        (["generate", "--out", out, "--preset", "qm2b"], "did you mean 'qm1b'"),
        (["generate", "--out", out, "--precision", "half"], "give one of float32"),
        (["generate", "--out", out, "--basis", "sto-3"], "unknown basis"),
        (["generate", "--out", out, "--xc", "b3"], "unknown functional"),
        (["generate", "--out", out, "--grid-level", "10"], "0 to 9"),
        (["generate", "--out", str(empty)], "cannot be written"),
        (["export", out, str(tmp_path / "a.parquet")], "does not exist"),
        (["info", str(tmp_path)], "holds no run"),
        (["info", str(empty)], "is a file: info describes a folder"),
    ]
    for arguments, words in cases:
        assert main(arguments) == 2
        message = capsys.readouterr().err
        assert words in message
        assert message.count("\n") == 1
    assert capsys.readouterr().out == ""


def test_import_is_light():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, qm1b.cli; print({'jax', 'rdkit', 'pyscf', 'pandas'} & {*sys.modules})",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "set()"


def test_the_public_names_are_there_and_importing_the_package_is_light():
    code = (
        "import sys, qm1b; print({'jax', 'rdkit', 'pyscf', 'h5py', 'numpy'} & {*sys.modules});"
        "assert set(qm1b.__all__) <= set(dir(qm1b)); [getattr(qm1b, n) for n in qm1b.__all__]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        qm1b.nothing  # noqa: B018


def test_a_reader_that_has_seen_enough(finished):
    """`qm1b info DIR | head -1` and `qm1b --help | head -1` end quietly."""
    for arguments in (f"info {finished[0]}", "--help"):
        line = f"{sys.executable} -m qm1b.cli {arguments} | true; exit ${{PIPESTATUS[0]}}"
        _ends_quietly(line)


@pytest.mark.parametrize("place", ["/dev/full", None])
def test_generate_goes_on_without_its_log(place, tmp_path, monkeypatch, capsys):
    """A full disk, or no standard output at all; the result of `info` is missed, a log is not."""
    monkeypatch.setattr("qm1b.run.generate.Run", partial(Run, factory=FAKE))
    monkeypatch.setattr(worker, "_CONTEXT", Threads)
    source, out = tmp_path / "a.smi", tmp_path / "out"
    source.write_text("C\nCC\nO\n")
    for code, words in (
        (0, ["generate", source, "--out", out, "--embed-timeout", "20"]),
        (0, ["export", out, tmp_path / "a.parquet"]),
        (1, ["head", out]),
        (1, ["--help"]),
    ):
        with (
            nullcontext() if place is None else open(place, "w") as stdout,
            redirect_stdout(stdout),
        ):
            assert main(list(map(str, words))) == code
        err = capsys.readouterr().err
        assert err.count("nothing can be printed") == err.count("\n") == 1
        assert ("the work goes on" in err) == (code == 0)
    assert len(qm1b.load(tmp_path / "a.parquet")) == 12


def _ends_quietly(line):
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 141)  # 0 if all was written before the reader went
    assert done.stderr == ""


@pytest.mark.slow
def test_few_open_files_are_one_sentence(tmp_path):
    (tmp_path / "in.smi").write_text("C\n")
    command = f"ulimit -n 14; exec {sys.executable} -m qm1b.cli generate in.smi --out out"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 2, done.stderr
    assert "Too many open files; allow more files in this shell (`ulimit -n 1024`)" in done.stderr
    assert done.stderr.count("\n") == 1
