"""`pyscf-ipu rks`, `optimize` and `frequencies`, as somebody at a shell meets them."""

import json
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from ase.io import read
from oracle import ground_state
from pyscf.tools import molden

import pyscf_ipu as pi
import pyscf_ipu.api.frequencies  # before the fixture below replaces the Solver
import pyscf_ipu.api.optimize
from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.terminal import NotPrinted
from pyscf_ipu.commands.cli import command_of, main
from pyscf_ipu.commands.report import Report
from pyscf_ipu.commands.shell import FREQUENCIES_LEVEL, FrequenciesCommand, RksCommand
from pyscf_ipu.molecule.named.geometries import molecule_from_text
from pyscf_ipu.solver.solver import Solver

LEVEL = ["--xc", "hf", "--precision", "float64"]


@pytest.fixture(autouse=True)
def no_other_disk_cache(monkeypatch):
    monkeypatch.setattr("pyscf_ipu.base.host.disk_cache.enable_disk_cache", lambda: None)


@pytest.fixture(autouse=True)
def shared_solver(solver_of, monkeypatch):
    """The programs that other tests have compiled."""

    def made(settings, machine=None):
        assert machine is None
        return solver_of(**{f.name: getattr(settings, f.name) for f in fields(settings)})

    monkeypatch.setattr("pyscf_ipu.solver.solver.Solver", made)


def test_a_preset_and_what_options_change_of_it():
    level = RksCommand("water", preset="spice").settings()
    assert level == pi.Settings.preset("spice")
    changed = RksCommand("water", level=pi.Settings(precision="float64"), preset="qm9").settings()
    assert changed == replace(pi.Settings.preset("qm9"), precision="float64")
    changed = RksCommand("water", level=pi.Settings(grid_level=2), preset="qm9").settings().check()
    assert (changed.grid_level, changed.grid_kind) == (2, "pyscf")
    frequencies = FrequenciesCommand("water", preset="rmd17").settings()
    assert frequencies == replace(pi.Settings.preset("rmd17"), precision="float64")
    assert RksCommand("water").settings() == pi.Settings()
    words = ["rks", "water", "--preset=qm9", "--basis", "sto-3g", "--no-cart", "--xc=b3lyp"]
    changed = command_of(words).settings()
    assert (changed.basis, changed.cart, changed.xc) == ("sto-3g", False, "b3lyp")
    assert changed.grid_level == pi.Settings.preset("qm9").grid_level


def test_a_composite_method_brings_its_basis():
    for words in ([], ["--preset", "qm9"], ["--preset", "r2scan-3c"]):
        level = command_of(["rks", "water", *words, "--xc", "r2SCAN-3c"]).settings().check()
        assert (level.basis, level.cart) == ("def2-mtzvpp", False)


def test_another_basis_for_a_composite_method_is_refused(capsys):
    for words in (["--xc", "b97-3c"], ["--preset", "b97-3c"]):
        assert main(["rks", "water", *words, "--basis", "sto-3g"]) == 2
        assert "xc='b97-3c' with basis='sto-3g': this method has" in capsys.readouterr().err


def test_an_unknown_preset_is_one_sentence(capsys):
    assert main(["rks", "water", "--preset", "geom"]) == 2
    assert "no preset 'geom'" in capsys.readouterr().err


@pytest.mark.slow
def test_rks_beside_pyscf(capsys, tmp_path):
    path = tmp_path / "water.molden"
    code = main(["rks", "water", *LEVEL, "--forces", "--compare", "--molden", str(path)])
    out = capsys.readouterr().out
    reference = ground_state(molecule_from_text("water"), xc="hf")
    assert code == 0
    assert out.startswith("Molecule(H2O, 3 atoms), hf/sto-3g, grid level 3, float64: converged")
    assert f"{reference.e_tot:.6f}" in out
    assert "forces, Hartree/Bohr" in out
    assert "energy - PySCF's: " in out
    error = float(out.split("energy - PySCF's: ")[1].split()[0])
    assert abs(error) < 1e-6
    energies = molden.load(str(path))[1]
    np.testing.assert_allclose(energies, reference.mo_energy, atol=1e-5)


def test_json_is_printed_or_written(capsys, tmp_path):
    assert main(["rks", "--json", "water", *LEVEL, "--compare", "--forces"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["pyscf"]["energy"] == pytest.approx(printed["result"]["energy"], abs=1e-7)
    np.testing.assert_allclose(printed["pyscf"]["forces"], printed["result"]["forces"], atol=1e-5)
    path = tmp_path / "water.json"
    assert main(["rks", "water", *LEVEL, "--json", str(path)]) == 0
    assert "energy" in capsys.readouterr().out
    written = json.loads(path.read_text())
    assert written["result"]["energy"] == printed["result"]["energy"]
    assert written["result"]["units"]["energy"] == "Hartree"


def test_files_are_written_also_if_nothing_can_be_printed(monkeypatch, tmp_path):
    def say(text):
        raise NotPrinted(text)

    monkeypatch.setattr("pyscf_ipu.commands.report.say", say)
    report = Report(tmp_path / "a.json", has_files=True)
    report.add("a text", energy=-1.0)
    with pytest.raises(NotPrinted, match="a text"):
        report.finish()
    assert json.loads((tmp_path / "a.json").read_text()) == {"energy": -1.0}
    with pytest.raises(NotPrinted):
        Report(None).add("a text")


def test_optimize_writes_the_geometry(capsys, tmp_path):
    path = tmp_path / "best.xyz"
    assert main(["optimize", "water", *LEVEL, "--xyz", str(path)]) == 0
    out = capsys.readouterr().out
    assert "converged after" in out
    atoms = read(path)
    field = ground_state(pi.Molecule.from_xyz(path), xc="hf")
    assert np.abs(field.nuc_grad_method().set(verbose=0).kernel()).max() < 2e-4
    assert f"{field.e_tot:.5f}" in out
    assert atoms.get_chemical_formula() == "H2O"
    assert main(["optimize", "water", *LEVEL, "--max-steps", "1"]) == 1
    assert "not converged after 1 steps" in capsys.readouterr().out


def test_frequencies_at_the_minimum(capsys):
    assert main(["frequencies", "water", *LEVEL, "--grid-level", "0", "--symmetry-number=2"]) == 0
    out = capsys.readouterr().out
    assert "optimisation: converged" in out
    assert "3 vibrations, 0 of them imaginary" in out
    assert "symmetry number 2" in out
    assert main(["frequencies", "water", *LEVEL, "--grid-level", "0", "--as-given", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["frequencies"]["wavenumbers"]) == 3
    assert record["frequencies"]["largest_force"] > 0.01


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rks", "watr"], "no file, no listed name, no SMILES and no geometry"),
        (["rks", "O 0 0 0, H 0 0 1"], "no SMILES and no geometry"),
        (["rks", "CC foo"], "no SMILES and no geometry"),
        (["rks", "O", "--preset", ""], "--preset is empty"),
        (["rks", "O", "--xc="], "--xc is empty"),
        (["frequencies", "water", "--temperature", "-5"], "--temperature is -5.0"),
        (["rks", "O", "--xc", "m06"], "unknown functional 'm06'"),
        (["rks", "O", "--molden", "no/folder/a"], "there is no folder no/folder"),
        (["optimize", "O", "--xyz", "no/folder/a"], "there is no folder no/folder"),
        (["rks", "O", "--charge", "1"], "contradicts --charge 1"),
        (["rks", "methane", "--charge", "1"], "odd number of electrons"),
        (["rks", "water", *LEVEL, "--max-cycles", "1"], "max_cycles=1: raise it"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, words, capsys):
    code = main(arguments)
    out, err = capsys.readouterr()
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
    assert "Traceback" not in out + err


@pytest.mark.parametrize("bug", [ValueError, ImportError, TypeError, OSError])
def test_a_bug_keeps_its_traceback_and_a_mistake_has_none(bug, capsys, monkeypatch):
    def broken(error):
        def shape(*_, **__):
            raise error

        return shape

    monkeypatch.setattr(Solver, "shape", broken(bug("zip() argument 2 is longer")))
    with pytest.raises(bug, match="zip"):
        main(["rks", "water", *LEVEL])
    monkeypatch.setattr(Solver, "shape", broken(UsageError("give fewer")))
    assert main(["rks", "water", *LEVEL]) == 2
    assert capsys.readouterr().err == "pyscf-ipu: give fewer\n"


def test_a_file_that_cannot_be_written_is_one_sentence(capsys):
    for command, option in (("rks", "--molden"), ("rks", "--json"), ("optimize", "--xyz")):
        code = main([command, "water", *LEVEL, "--grid-level", "0", option, "/proc/a.json"])
        err = capsys.readouterr().err
        assert (code, err.count("\n")) == (2, 1)
        assert err.startswith("pyscf-ipu: cannot write /proc/a.json: ")


def test_a_doubt_about_the_unit_is_one_sentence(capsys, tmp_path):
    path = tmp_path / "bohr.xyz"
    path.write_text("3\n\nO 0 0 0.22\nH 0 1.43 -0.89\nH 0 -1.43 -0.89\n")
    assert main(["rks", str(path), *LEVEL]) == 0
    err = capsys.readouterr().err
    assert err.startswith("pyscf-ipu: warning: ")
    assert "in Bohr" in err
    assert err.count("\n") == 1


def test_without_ase(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ase", None)
    for module in ("frequencies", "optimize", "calculator", "normal_modes"):
        monkeypatch.delitem(sys.modules, f"pyscf_ipu.api.{module}", raising=False)
    for command, what in (("frequencies", "the calculator"), ("optimize", "optimize takes its")):
        assert main([command, "water", *LEVEL]) == 2
        err = capsys.readouterr().err
        assert err.startswith(f"pyscf-ipu: {what}")
        assert 'run pip install "ase' in err


def test_every_setting_is_an_option(capsys):
    with pytest.raises(SystemExit):
        main(["rks", "--help"])
    text = capsys.readouterr().out
    for field in fields(pi.Settings):
        no = "no-" if field.default is True else ""  # the other value is the default
        assert f"--{no}{field.name.replace('_', '-')}" in text
    assert RksCommand("water").level == pi.Settings()


def test_frequencies_have_the_same_level_everywhere(monkeypatch):
    made = []

    def stop(_, **level):
        made.append(level)
        raise KeyboardInterrupt

    monkeypatch.setattr("pyscf_ipu.api.frequencies.solver_for", stop)
    with pytest.raises(KeyboardInterrupt):
        pi.frequencies(molecule_from_text("water"))
    assert made == [{"precision": FREQUENCIES_LEVEL.precision}]
    assert FREQUENCIES_LEVEL.grid_level == pi.Settings().grid_level


@pytest.mark.slow
def test_compare_knows_the_engine_s_functionals_and_grids(capsys):
    level = ["--xc", "wb97x", "--grid-level", "20", "50", "--no-prune", "--precision", "float64"]
    main(["rks", "hydrogen", *level, "--compare"])
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("energy - PySCF's")]
    assert abs(float(line.split(":")[1].split()[0])) < 1e-6, "eV"


@pytest.mark.parametrize(
    ("target", "sentence"), [("bowl", "unknown target 'bowl'"), ("bow:x", "TARGET:IPUS")]
)
def test_a_wrong_chip_is_refused_before_anything_is_computed(target, sentence, capsys, monkeypatch):
    monkeypatch.setattr("pyscf_ipu.molecule.named.argument.find_molecule", None)
    assert main(["rks", "water", "--ipu", target]) == 2
    assert sentence in capsys.readouterr().err
