"""nanoDFT against PySCF, its worked magnitudes, and its command."""

import inspect
import math
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from pyscf_ipu.base.errors import ConvergenceError, InvalidMolecule, UsageError
from pyscf_ipu.elements.atomic_grid import atomic_grid
from pyscf_ipu.molecule.named.geometries import GEOMETRIES, molecule_from_text
from pyscf_ipu.nanodft import command as nanodft_command
from pyscf_ipu.nanodft import dft, table
from pyscf_ipu.nanodft.dft import DEFAULT, FUNCTIONALS, EnergyParts, Theory, diis, forces, scf
from pyscf_ipu.nanodft.table import Reference, pyscf_forces, pyscf_result
from pyscf_ipu.xc.registry import functional
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS as ENGINE_FUNCTIONALS

WATER = molecule_from_text("O 0.1 0 0; H 0 0 1; H 0 0.9 0.2")  # without symmetry


@pytest.fixture(scope="module")
def benzene():
    """The first command of the page."""
    cycles = []
    return scf(molecule_from_text("benzene"), on_cycle=cycles.append), cycles


@pytest.fixture(scope="module")
def water():
    return scf(WATER)


@pytest.fixture(scope="module")
def water_reference():
    return pyscf_result(WATER, DEFAULT)


@pytest.mark.slow
def test_benzene_is_that_of_pyscf(benzene):
    found, cycles = benzene
    _, reference = pyscf_result(molecule_from_text("benzene"), DEFAULT)
    assert found.energy == pytest.approx(reference.energy, abs=1e-8)
    np.testing.assert_allclose(found.terms, reference.terms, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.mo_energy, reference.mo_energy, rtol=0, atol=1e-6)
    assert found.gap == pytest.approx(reference.gap, abs=1e-6)
    assert [c.cycles for c in cycles] == list(range(1, found.cycles + 1))
    errors = [abs(c.energy - reference.energy) for c in cycles]
    assert errors[0] > 0.1 > 1e-3 > errors[4]
    np.testing.assert_allclose(found.mo_energy[19], found.mo_energy[20], atol=1e-4)  # e1g


def test_worked_magnitudes_are_true(benzene):
    """Every figure that a comment gives for benzene."""
    found, _ = benzene
    source = inspect.getsource(dft)
    lines = [*inspect.getsource(EnergyParts).splitlines(), "energy: float  # -229.4 Ha for C6H6"]
    worked = {
        m["name"]: float(m["value"])
        for m in (re.search(r"(?P<name>\w+): [\w |]+  # (?P<value>[-\d.]+) Ha", x) for x in lines)
        if m
    }
    assert worked.keys() == {*EnergyParts._fields, "energy"}
    assert lines[-1] in source
    for name, value in worked.items():
        assert value == round(getattr(found if name == "energy" else found.terms, name), 1), name
    assert "(A, N) = (12, 36), and G = 10236" in source
    assert 6 * (len(atomic_grid(6, 0)) + len(atomic_grid(1, 0))) == 10236
    assert found.mo_coeff.shape == (36, 36)
    assert "(N, 21) for C6H6" in source
    assert molecule_from_text("benzene").n_electrons == 42
    assert f"{found.terms.nuclear_repulsion:.1f} Ha for C6H6" in source
    assert f"{36**4 / 1e6:.1f} million numbers for benzene" in source


def test_the_file_is_short_and_holds_everything():
    text = Path(dft.__file__).read_text()
    assert len(text.splitlines()) <= 450
    inside = re.findall(r"^from (pyscf_ipu\S*) import (.*)$", text, re.MULTILINE)
    assert [names for _, names in inside] == ["ConvergenceError, UsageError", "Molecule"]


@pytest.mark.parametrize("name", ["lda", "pbe", "pbe0", "blyp", "b3lyp", "b3lyp5"])
def test_functionals_are_those_of_the_engine(name):
    rng = np.random.default_rng(1)
    rho = 10 ** rng.uniform(-8, 2, 200)
    sigma = rho ** (8 / 3) * 10 ** rng.uniform(-4, 3, 200)
    with jax.enable_x64(True):
        found = jax.jit(FUNCTIONALS[name][0])(rho, sigma)
        expected = jax.jit(functional(name).energy_density)(rho, sigma)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert FUNCTIONALS[name][1] == functional(name).exact_exchange


def test_every_functional_is_one_of_the_engine_s():
    """nanoDFT leaves out the longer ones."""
    assert FUNCTIONALS.keys() < set(ENGINE_FUNCTIONALS)
    for name, (_, exchange, pyscf_name) in FUNCTIONALS.items():
        assert exchange == functional(name).exact_exchange
        assert pyscf_name == functional(name).pyscf_name


def test_float32_is_float32(water):
    found = scf(WATER, Theory(precision="float32"))
    assert {x.dtype for x in (found.density, found.fock, found.mo_coeff)} == {np.dtype("float32")}
    assert found.energy == pytest.approx(water.energy, abs=1e-3)
    assert found.gap == pytest.approx(water.gap, abs=1e-3)


def test_the_fock_matrix_is_the_gradient_of_the_energy(water, water_reference):
    field, _ = water_reference
    assert water.energy == pytest.approx(field.e_tot, abs=1e-8)
    np.testing.assert_allclose(water.fock, field.get_fock(), rtol=0, atol=1e-5)
    np.testing.assert_allclose(water.fock, water.fock.T, rtol=0, atol=1e-12)


def test_forces_are_those_of_pyscf_with_the_response_of_the_grid(water, water_reference):
    found = forces(WATER, water)
    np.testing.assert_allclose(found, pyscf_forces(water_reference[0]), rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.sum(0), 0, atol=1e-9)  # only because the grid moves along


def test_diis_finds_the_mixture_without_error():
    rng = np.random.default_rng(0)
    focks, errors = rng.normal(size=(3, 4, 4)), rng.normal(size=(2, 4, 4))
    weights = np.array([0.5, -0.3, 0.8])
    last = -(weights[0] * errors[0] + weights[1] * errors[1]) / weights[2]
    mixed = diis(list(focks), [*errors, last])
    np.testing.assert_allclose(mixed, np.tensordot(weights, focks, 1), rtol=0, atol=1e-10)


def test_diis_without_any_error_keeps_the_matrix():
    """Symmetry alone determines the orbitals of H2 in a minimal basis."""
    fock = np.eye(2)
    np.testing.assert_allclose(diis([fock], [np.zeros((2, 2))]), fock, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (Theory(precision="mixed"), "has float64, float32"),
        (Theory(xc="m06-2x"), "has hf, lda, pbe"),
        (Theory(basis="x"), "PySCF has no basis 'x'"),
        (Theory(basis="lanl2dz"), "core potential"),
        (Theory(grid_level=10), "grid_level is 0 to 9"),
        (Theory(max_cycles=0), "max_cycles 1 or more"),
    ],
)
def test_levels_that_are_refused(level, words):
    with pytest.raises(UsageError, match=words):
        scf(molecule_from_text("hydrogen chloride"), level)


def test_not_converged_and_too_large(monkeypatch):
    with pytest.raises(ConvergenceError, match=r"after 2 cycles .* raise max_cycles"):
        scf(WATER, Theory(max_cycles=2))
    monkeypatch.setattr(dft, "MOST_AOS", 6)
    with pytest.raises(UsageError, match="7 AOs"):
        scf(WATER)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_molecules_by_name(name):
    molecule = molecule_from_text(name.upper().replace(" ", "-"))
    molecule.check()
    assert molecule.name == name
    distance = np.linalg.norm(molecule.positions[:, None] - molecule.positions, axis=-1)
    distance[np.diag_indices(len(distance))] = math.inf
    assert np.all((distance.min(1) > 1.3) & (distance.min(1) < 3.1)), "bonds in Bohr"


@pytest.mark.parametrize("text", ["waters", "O 0 0", "O 0 0 0; H 0 0 x", "Xy 0 0 0", "", ";"])
def test_text_that_is_no_molecule(text):
    with pytest.raises(InvalidMolecule, match=r"Angstrom such as .*water"):
        molecule_from_text(text)


@pytest.fixture
def command(monkeypatch, tmp_path, capsys):
    """nanodft with these arguments: its exit code, stdout and stderr."""
    monkeypatch.setenv("PYSCF_IPU_CACHE", str(tmp_path))
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            code = nanodft_command.main(arguments)
        return code, *capsys.readouterr()

    return run


def test_the_command_prints_every_cycle_beside_pyscf(command):
    text = "O 0.1 0 0; H 0 0 1; H 0 0.9 0.2"
    code, out, err = command(text, "--xc", "hf", "--compare", "--forces")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == "energy kinetic attract Coulomb exchange xc gap/eV [F,D] error/eV".split()
    cycles = [row for row in rows if row and row[0].isdecimal() and len(row) == 10]
    assert [int(row[0]) for row in cycles] == list(range(1, len(cycles) + 1))
    assert abs(float(cycles[0][-1])) > 1e-2 > 1e-6 > abs(float(cycles[-1][-1]))
    (reference,) = (row for row in rows if row and row[0] == "P")
    _, expected = pyscf_result(WATER, Theory(xc="hf"))
    assert float(reference[1]) == pytest.approx(expected.energy, abs=1e-6)
    assert cycles[-1][1:8] == reference[1:8]
    assert "STO-3G" in out.upper()
    assert len([row for row in rows if row and row[0] in "OH" and len(row) == 5]) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("waters",),
        ("water", "--xc", "m06"),
        ("water", "--xc", "hse06"),
        ("water", "--charge", "1"),
        ("water", "--basis", "x"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(command, arguments):
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("nanodft: ")
    assert err.count("\n") == 1


def test_a_loop_that_does_not_end_leaves_a_whole_table(command):
    text = "O 0.1 0 0; H 0 0 1; H 0 0.9 0.2"
    code, out, err = command(text, "--xc", "hf", "--max-cycles", "1")
    assert code == 2
    assert out.count("\n") == 2
    assert out.endswith("\n"), "the sentence on stderr has a line of its own"
    assert err.startswith("nanodft: not converged after 1 cycles")


def test_a_reference_that_did_not_converge_is_named(command, monkeypatch):
    monkeypatch.setattr(table, "PYSCF_CYCLES", 1)
    text = "O 0.1 0 0; H 0 0 1; H 0 0.9 0.2"
    code, out, err = command(text, "--xc", "hf", "--compare", "--forces")
    assert (code, err) == (0, "")
    assert any(line.startswith("P? ") for line in out.splitlines())
    assert "PySCF did not converge in 1 cycles: row P? is where it stopped" in out
    assert "energy - PySCF's (row P?): -" in out
    assert "- PySCF's (not converged)" in out


def test_only_errors_are_coloured(water_reference):
    field, result = water_reference
    assert water_reference.shown(1e-5, "text") == "[green]text[/]"
    assert water_reference.shown(1.0, "text") == "[red]text[/]"
    stopped = Reference(SimpleNamespace(converged=False), result)
    assert (stopped.shown(1e-5, "text"), stopped.label) == ("text", "P?")
    assert (field.converged, water_reference.label) == (True, "P")
