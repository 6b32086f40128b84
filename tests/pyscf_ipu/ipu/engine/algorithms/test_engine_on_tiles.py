"""The engine with an IPU's algorithms: same energy, priced without gaps, through the command."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import pyscf_ipu as pi
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.ipu import BOW, machine_of, simulate
from pyscf_ipu.ipu.findings.totals import shares
from pyscf_ipu.numerics.two_words import to_float64

COMMAND = Path(sys.executable).parent / "pyscf-ipu"


@pytest.fixture(scope="module")
def fluoride():
    mol = pi.Molecule([9, 1], [[0, 0, 0], [0, 0.3, 1.7]])
    core, args = pi.rks_core(
        mol, pi.Settings(grid_level=0), lambda shape: machine_of(BOW, 1, shape, run_vertices=True)
    )
    run = simulate(core, BOW)
    return mol, core, args, run, *run(*args)


@pytest.mark.long
def test_the_energy_is_the_engine_s(fluoride):
    mol, _, _, _, solution, _ = fluoride
    energy = sum(float(to_float64(t)) for t in solution.terms)
    expected = pi.rks(mol, grid_level=0)
    assert bool(solution.converged)
    assert abs(energy - float(expected.energy)) * HARTREE_TO_EV < 5e-4
    found = np.asarray(solution.orbital_energy)[:6]
    np.testing.assert_allclose(found, expected.mo_energy[:6], atol=2e-5)


@pytest.mark.long
def test_outputs_are_those_of_the_plain_program(fluoride):
    _, core, args, _, solution, _ = fluoride
    for a, b in zip(jax.tree.leaves(solution), jax.tree.leaves(jax.jit(core)(*args)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.long
def test_the_price_is_of_the_vertices_whichever_way_they_are_computed():
    mol = pi.Molecule([1, 1], [[0, 0, 0], [0, 0, 1.4]])

    def priced(run_vertices):
        core, args = pi.rks_core(
            mol, pi.Settings(grid_level=0), lambda shape: machine_of(BOW, 1, shape, run_vertices)
        )
        solution, profile = simulate(core, BOW)(*args)
        cycles = profile.total_by("name")
        vertices = {k: v for k, v in cycles.items() if k.startswith("family_eri")}
        return sum(float(to_float64(t)) for t in solution.terms), vertices

    (energy, cycles), (other_energy, other_cycles) = priced(True), priced(False)
    assert cycles
    assert other_cycles == cycles
    assert abs(energy - other_energy) < 1e-6


@pytest.mark.long
def test_everything_in_it_has_a_price(fluoride):
    *_, solution, profile = fluoride
    assert profile.unknown_ops == {}
    assert profile.memory.overflowing.size == 0
    stages = profile.total_by("stage")
    assert {
        "pairs",
        "one_electron",
        "eri",
        "grid",
        "xc",
        "repulsion",
        "eigensolver",
        "diis",
        "guess",
        "orthonormalisation",
        "occupation",
        "energy",
        "convergence",
        "properties",
    } <= set(stages)
    assert shares(stages)["other"] < 0.05
    # The Fock matrix is built once in every cycle.
    builds = sum(n for s, n in profile.steps() if s.name == "xc_functional")
    assert builds == int(solution.cycles)


@pytest.mark.long
def test_the_command_writes_a_page_and_the_figures(tmp_path):
    page, figures, trace = (tmp_path / name for name in ("a.html", "a.json", "a.trace"))
    command = [
        COMMAND, "profile", "--smiles", "[H][H]", "--target", "bow",
        "--compare", "gc200:2", "--strict", "--html", page, "--json", figures, "--trace", trace,
    ]  # fmt: skip
    found = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stderr
    assert "Cycles by stage" in found.stdout
    assert "B / A" in found.stdout  # the same on two GC200
    assert "gc200, 2 IPUs" in found.stdout
    read = json.loads(figures.read_text())
    assert read["energy_hartree"] == pytest.approx(-1.15, abs=0.1)
    assert read["cycles"]["total"] > 0
    assert page.stat().st_size > 10_000
    assert json.loads(trace.read_text())["traceEvents"]


def test_the_command_names_what_is_wrong():
    command = [
        COMMAND,
        "profile",
        "--smiles",
        "C(",
        "--num-ipus",
        "0",
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert found.returncode == 2
    assert "C(" in found.stderr
