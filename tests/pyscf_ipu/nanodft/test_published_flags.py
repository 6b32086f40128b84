"""The flags of the original PySCF-IPU: translated, or answered in a sentence."""

from pathlib import Path

import pytest
import tyro

from pyscf_ipu.cli import as_rks
from pyscf_ipu.cli import main as pyscf_ipu_main
from pyscf_ipu.nanodft.command import main as nanodft_main
from pyscf_ipu.nanodft.published_flags import SENTENCES, is_published, translated
from qm1b.commands.generate import Generate


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
        ("-methane -skip_minao -spin 0 -plevel 2", "methane"),
        ("--dense_ERI False --eri_threshold 0.0 --ao_threshold 0 --v False water", "water"),
        ("--structure_optimization false --profile no --diis water", "water"),
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


NANODFT = """
its mol_str float32 basis xc backend level multv intv threads threads_int diis batches ndevices
structure_optimization eri_threshold ao_threshold dense_ERI v profile vis_num_error molecule_name
"""
DFT = """
generate num_conformers nohs verbose choleskycpu resume density_mixing skip_minao num id its step
spin str numerror ipumult skippyscf skipus float32 float16 basis xc skip backend benchmark nan
skipdiis skipeigh methane H forloop he level plevel C gdb skiperi randeri save fname multv intv
randomSeed scale_eri scale_w scale_ao scale_overlap scale_cholesky scale_ghamil scale_eigvects
scale_sdf scale_vj scale_errvec sk debug jit enable64 rattled_std profile pyscf uniform_pyscf
threads threads_int split limit seperate gname checkc geneigh
"""
"""All options of its two programs."""


@pytest.mark.parametrize(
    "flag", [f"--{name}" for name in NANODFT.split()] + [f"-{name}" for name in DFT.split()]
)
def test_every_option_of_the_original_is_known(flag):
    assert is_published(flag)
    try:
        words = translated([flag, "0"])
    except ValueError as refused:
        words = [str(refused)]
    assert flag not in words or flag in ("--basis", "--xc")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--diis False", "always uses DIIS"),
        ("-spin 2", "closed shells"),
        ("water -spin", "no value: give 0"),
        ("water -backend", "no value: give cpu"),
        ("--dense_ERI True", "package's own"),
        ("--eri_threshold 1e-9", "package's own"),
        ("-scale_eri 2", "no scaling here"),
    ],
)
def test_what_would_change_a_number_is_not_left_out(words, sentence):
    with pytest.raises(ValueError, match=sentence):
        translated(words.split())


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (
            "-generate -save -fname name -level 0 -plevel 0 -gdb 9 -backend cpu -float32",
            "qm1b generate gdb11_size09.smi --preset qm1b --out data/name",
        ),
        (
            "-gdb 6 -randomSeed 3 -num_conformers 50 -fname test -split 0 3 -generate -save "
            "-backend ipu -level 1 -its 20 -skip_minao -choleskycpu -multv 2 -basis sto3g",
            "qm1b generate gdb11_size06.smi --preset qm1b --conformers 50 --seed 3 --grid-level 1 "
            "--out data/test --shard 0/3; qm1b merge data/test/part-* --out data/test joins the "
            "parts",
        ),
    ],
)
def test_a_dataset_gets_its_command(words, command):
    with pytest.raises(ValueError, match="is of the original PySCF-IPU; here: qm1b") as caught:
        translated(words.split())
    assert str(caught.value).endswith(f": {command}")
    options = command.partition(";")[0].split()[2:]
    parsed = tyro.cli(Generate, args=options, config=(tyro.conf.OmitArgPrefixes,))
    assert parsed.source == Path(options[0])
    assert (parsed.seed, parsed.conformers) == ((3, 50) if "6" in options[0] else (0, None))


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
