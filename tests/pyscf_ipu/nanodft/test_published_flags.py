"""The flags of the original PySCF-IPU: translated, or answered in a sentence."""

import pytest

from pyscf_ipu.cli import as_rks
from pyscf_ipu.cli import main as pyscf_ipu_main
from pyscf_ipu.nanodft.command import main as nanodft_main
from pyscf_ipu.nanodft.published_flags import SENTENCES, is_published, translated


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--mol_str benzene --its 20 --float32", "benzene --max-cycles 20 --precision float32"),
        ("--mol_str=benzene --its=20 --level=1", "benzene --max-cycles 20 --grid-level 1"),
        ("--float32 true --diis true water", "--precision float32 water"),
        ("--float32 false water", "water"),
        ("-methane -backend cpu -float32", "methane --precision float32"),
        (
            "-basis STO-3G -xc b3lyp -level 0 -H",
            "--basis STO-3G --xc b3lyp --grid-level 0 hydrogen",
        ),
        ("water --threads 6 --threads_int 6 -v --compare", "water --compare"),
        ("water --precision float64 --unknown 3", "water --precision float64 --unknown 3"),
    ],
)
def test_translations(old, new):
    assert translated(old.split()) == new.split()


def test_a_geometry_stays_one_argument():
    geometry = "O 0 0 0; H 0 0 1; H 0 1 0"
    assert translated(["-str", geometry, "-its", "9"]) == [geometry, "--max-cycles", "9"]


@pytest.mark.parametrize("flag", SENTENCES)
def test_what_is_done_otherwise_says_how(flag):
    with pytest.raises(ValueError, match=r"is of the original PySCF-IPU; here: .{10,}"):
        translated([f"-{flag}", "9"])


def test_there_is_no_ipu(capsys):
    assert pyscf_ipu_main(["-methane", "-backend", "ipu"]) == 2
    assert "pyscf-ipu rks MOLECULE --ipu bow" in capsys.readouterr().err
    assert nanodft_main(["--mol_str", "c20", "--backend", "ipu"]) == 2
    assert "there is no IPU" in capsys.readouterr().err


def test_a_command_without_its_name_is_rks():
    assert as_rks("-methane -float32".split()) == "rks methane --precision float32".split()
    assert as_rks("rks --mol_str water".split()) == ["rks", "water"]
    for ours in ("profile --smiles CCO", "--help", "info", "optimize water --level 3"):
        assert as_rks(ours.split()) == ours.split()
    assert not is_published("--help")
    assert pyscf_ipu_main(["-gdb", "9"]) == 2


def test_nanodft_runs_in_the_old_spelling(capsys):
    words = ["--mol_str", "H 0 0 0; H 0 0 0.74", "--its", "20", "--integrals", "pyscf"]
    assert nanodft_main(words) == 0
    new = capsys.readouterr().out
    assert "energy -1.1" in new
