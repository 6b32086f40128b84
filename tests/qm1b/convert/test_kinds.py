"""The table of formats: which one a file name asks for, and what the command offers."""

from pathlib import Path
from typing import get_args

import pytest

from qm1b.cli import main
from qm1b.commands.convert import FormatName
from qm1b.convert.export import export
from qm1b.convert.kinds import KINDS, kind_of
from qm1b.errors import UserError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.parquet", "parquet"),
        ("a.extxyz", "extxyz"),
        ("a.extxyz.gz", "extxyz"),
        ("a.aselmdb", "aselmdb"),
        ("a.db", "schnetpack"),
    ],
)
def test_an_ending_decides(name, kind):
    assert kind_of(Path(name)) is KINDS[kind] is kind_of(Path(name), kind)


def test_an_ending_that_decides_nothing():
    with pytest.raises(UserError, match=r"several kinds: give --format ace or spice"):
        kind_of(Path("a.h5"))
    with pytest.raises(UserError, match=r"unknown kind: use \.parquet, .*\.db, or give --format"):
        kind_of(Path("folder"))
    with pytest.raises(UserError, match=r"does not end with \.h5 or \.hdf5"):
        kind_of(Path("a.db"), "spice")
    with pytest.raises(UserError, match="unknown format 'xyz': use one of parquet"):
        kind_of(Path("a.xyz"), "xyz")
    assert kind_of(Path("folder"), "hub") is KINDS["hub"]


def test_the_command_offers_every_format():
    assert get_args(FormatName) == tuple(KINDS)


def test_only_what_is_read_again_holds_everything(finished, tmp_path):
    with pytest.raises(UserError, match=r"cannot hold everything \(--all\)"):
        export(finished[0], tmp_path / "a.aselmdb", everything=True)


def test_the_command(with_forces, tmp_path, capsys):
    out = tmp_path / "a.hdf5"
    assert main(["export", str(with_forces), str(out), "--format", "spice"]) == 0
    assert "10 rows; left out 2 not converged" in capsys.readouterr().out
    assert main(["export", str(with_forces), str(tmp_path / "a.aselmdb")]) == 0
    assert "beside it: metadata.npz" in capsys.readouterr().out
