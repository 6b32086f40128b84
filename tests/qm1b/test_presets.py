"""`qm1b generate --preset`: the level, and what it chooses where a flag was left out."""

import pytest
from fake_runs import fake_run

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.settings import PRESETS, Settings
from qm1b import settings as of_runs
from qm1b.cli import main
from qm1b.commands.generate import Generate, run_settings
from qm1b.errors import UserError


def test_a_preset_chooses_level_conformers_and_forces():
    for name, preset in PRESETS.items():
        found = run_settings(Generate(preset=name, max_aos=99))
        assert found.level == Settings.preset(name) == of_runs.PRESETS[name]
        assert (found.conformers, found.forces) == (preset.conformers, preset.forces)
        assert found.max_aos == 99


def test_qm1bs_preset_has_its_thousand_conformers_and_a_first_look_has_few():
    assert run_settings(Generate(preset="qm1b")).conformers == 1000
    assert run_settings(Generate(preset="qm1b", conformers=3)).conformers == 3
    bare = run_settings(Generate())
    assert (bare.conformers, bare.level) == (4, Settings.preset("qm1b"))


def test_flags_win_over_the_preset():
    flags = Generate(preset="ani1x", max_aos=99, conformers=7, forces=False, precision="float32")
    found = run_settings(flags)
    assert (found.conformers, found.forces, found.level.precision) == (7, False, "float32")
    assert run_settings(Generate(forces=True)).forces is True
    assert run_settings(Generate()).forces is False


def test_given_geometries_are_not_repeated(tmp_path):
    path = tmp_path / "water.xyz"
    path.write_text("3\nwater\nO 0 0 0\nH 0 0 0.96\nH 0 0.93 -0.24\n")
    assert run_settings(Generate(source=path, preset="qmugs", max_aos=99)).conformers == 1


def test_the_size_limit_is_128_or_what_memory_holds(monkeypatch):
    assert run_settings(Generate()).max_aos == 128
    found = []
    for gib in (4, 32):
        monkeypatch.setattr("pyscf_ipu.solver.platform.available_bytes", lambda: gib * 2**30)  # noqa: B023
        found.append(run_settings(Generate(preset="qm9")).max_aos)
    assert 50 < found[0] < found[1]


def test_a_resumed_run_keeps_its_size_limit(tmp_path, monkeypatch):
    out, _ = fake_run(tmp_path, workers=1, max_aos=77)
    source = tmp_path / "input.smi"
    assert run_settings(Generate(source=source, preset="qm9", out=out)).max_aos == 77
    assert run_settings(Generate(source=source, preset="qm9", out=out, max_aos=9)).max_aos == 9


def test_shares_must_be_told_the_size_limit(tmp_path):
    with pytest.raises(UserError, match=r"--shard with this preset needs --max-aos.*must agree"):
        run_settings(Generate(preset="qm9", shard="0/2", out=tmp_path))
    flags = Generate(preset="qm9", shard="0/2", out=tmp_path, max_aos=200)
    assert run_settings(flags).max_aos == 200


def test_pruning_is_the_presets_unless_a_flag_says_more():
    def grid(**flags):
        return run_settings(Generate(preset="qm9", max_aos=9, **flags)).level.grid_in_words

    assert grid() == "Gaussian's grid 75x302 unpruned"
    assert grid(unpruned=False) == "grid 75x302"
    assert grid(grid_level=3) == "grid level 3"
    assert grid(grid_level=3, unpruned=True) == "grid level 3 unpruned"
    assert grid(grid_level=(99, 590)) == "Gaussian's grid 99x590 unpruned"
    assert grid(grid_level=(99, 590), grid_kind="pyscf") == "grid 99x590 unpruned"
    assert run_settings(Generate(unpruned=True)).level.prune is False
    assert run_settings(Generate()).level.prune is True


def test_a_composite_method_brings_its_basis():
    for name in (None, "qm9", "r2scan-3c"):
        level = run_settings(Generate(preset=name, xc="r2SCAN-3c", max_aos=9)).level
        assert (level.xc, level.basis, level.cart) == ("r2scan-3c", "def2-mtzvpp", False)
    with pytest.raises(UsageError, match="xc='b97-3c' with basis='sto-3g': this method has"):
        run_settings(Generate(preset="b97-3c", basis="sto-3g", max_aos=9))


def test_another_basis_has_spherical_functions_again():
    flags = {"preset": "ani1x", "basis": "def2-svp", "max_aos": 9}
    assert run_settings(Generate(**flags)).level.cart is False
    assert run_settings(Generate(**flags, cart=True)).level.cart is True


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--xc wb97", "unknown functional"),
        ("--basis nonsense", "unknown basis"),
        ("--precision half", "'half': give one of float32"),
        ("--grid-level 12", "0 to 9"),
        ("--grid-level 75 303", "303"),
    ],
)
def test_a_wrong_level_is_one_sentence(tmp_path, capsys, flags, words):
    out = str(tmp_path / "out")
    assert main(["generate", "--preset", "qmugs", *flags.split(), "--out", out]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1


def test_an_unknown_preset_is_one_sentence(tmp_path, capsys):
    for name, words in (("qm10", "did you mean 'qm1b'?"), ("geom", "GFN2-xTB")):
        for command in (["generate", "--out", str(tmp_path / "out")], ["plan", "--molecules=9"]):
            assert main([*command, "--preset", name]) == 2
            printed = capsys.readouterr()
            assert words in printed.err
            assert printed.err.count("\n") == 1
            assert not printed.out


def test_a_run_of_the_earlier_preset_is_refused_with_its_flag(tmp_path):
    """`qmugs` and `spice` had exact integrals once."""
    fake_run(tmp_path, "C\n", workers=1)
    with pytest.raises(UserError, match=r"settings as there \(that run has --jk exact\):\n"):
        fake_run(tmp_path, "C\n", workers=1, level=of_runs.PRESETS["qm1b"].changed(jk="ri"))
