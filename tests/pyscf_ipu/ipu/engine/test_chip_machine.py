"""A simulated chip as the machine of a solver."""

import pickle
from dataclasses import replace

import jax
import numpy as np
import pytest

import pyscf_ipu as pi
from pyscf_ipu.base.errors import TooLarge
from pyscf_ipu.ipu import BOW, GC200, machine, machine_of, simulate, target
from pyscf_ipu.ipu.chip.target import described_target
from pyscf_ipu.ipu.engine.command import price_rks

LEVEL = pi.Settings(grid_level=0)
WATER = [pi.Molecule.from_smiles("O", seed=k) for k in range(3)]
HYDROGEN = pi.Molecule.from_smiles("[H][H]")
STRETCHED = replace(WATER[0], positions=2.0 * WATER[0].positions)


@pytest.fixture(scope="module")
def on_bow():
    return pi.Solver(LEVEL, machine("bow"))


@pytest.mark.slow
def test_every_molecule_has_the_price_of_its_own_run(on_bow):
    """That of `price_rks`, which counts the loops by another program."""
    row = pi.rks([*WATER, STRETCHED], solver=on_bow)
    assert len(set(row.cycles)) > 1
    price = price_rks(STRETCHED, LEVEL, BOW)
    np.testing.assert_allclose(row.ipu_cycles_low[3], price.cycles.low, rtol=1e-7)
    np.testing.assert_allclose(row.ipu_cycles_high[3], price.cycles.high, rtol=1e-7)
    assert row.ipu_fullest_tile_bytes[3] == price.memory.max_tile_bytes
    assert row.ipu_cycles_low[3] > row.ipu_cycles_low[0]


def test_energies_are_those_of_a_cpu(on_bow):
    np.testing.assert_allclose(
        pi.rks(WATER, solver=on_bow).energy, pi.rks(WATER, grid_level=0).energy, atol=2e-5
    )


def test_rks_finds_the_machine_by_its_name_or_target(on_bow):
    one = pi.rks(WATER[0], grid_level=0, machine="bow")
    other = pi.rks(WATER[0], machine=machine("bow"), solver=on_bow)
    assert one.energy == other.energy
    assert one.ipu_cycles_low == other.ipu_cycles_low
    assert "million cycles, fullest tile" in repr(one)
    assert pi.rks(WATER[0], grid_level=0, machine="cpu").ipu_cycles_low is None
    assert pi.rks([], grid_level=0, machine="bow").ipu_fullest_tile_bytes.shape == (0,)


@pytest.mark.long
def test_vertices_give_the_same_up_to_rounding():
    one, two = (
        pi.rks(HYDROGEN, grid_level=0, machine=machine("bow", run_vertices=run))
        for run in (False, True)
    )
    assert abs(one.energy - two.energy) < 2e-6
    assert one.ipu_cycles_low == two.ipu_cycles_low


def test_a_solver_keeps_its_machine_in_another_process(on_bow):
    again = pickle.loads(pickle.dumps(on_bow))
    assert again.machine == on_bow.machine
    assert again.machine.machine(again.shape(WATER[0])).has_float64 is False
    other = on_bow.with_dispersion(replace(LEVEL, xc="b3lyp-d3bj"))
    assert other.machine is on_bow.machine


@pytest.mark.long
def test_a_shape_that_overflows_a_tile_costs_its_molecules_alone():
    ethanol = pi.Molecule.from_smiles("CCO")
    small = machine("bow:memory_bytes_per_tile=225000")
    rows = pi.rks([HYDROGEN, ethanol], grid_level=0, machine=small)
    assert rows.status[0] == "converged"
    assert "too large for a simulated bow:memory_bytes" in rows.status[1]
    assert "bytes and have 225000" in rows.status[1]
    assert np.isnan(rows.ipu_cycles_low[1])
    assert rows.ipu_fullest_tile_bytes[1] == -1
    assert "more IPUs" not in rows.status[1]
    with pytest.raises(TooLarge, match="bytes and have 225000"):
        pi.rks(ethanol, grid_level=0, machine=small)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"precision": "mixed"}, "an IPU computes in float32"),
        ({"precision": "float64"}, "an IPU computes in float32"),
        ({"jk": "ri"}, "float64, which an IPU does not have"),
        ({"basis": "cc-pvtz"}, "f functions"),
        ({"forces": True}, "^forces: .* not for forces or stability"),
        ({"stability": True}, "^stability: "),
        ({"machine": "bow-pod4"}, "a molecule is computed on one: give bow or gc200"),
        ({"machine": "gc2"}, "too little is public"),
        ({"machine": "ipu"}, "unknown machine 'ipu': give cpu or gpu, or a simulated chip, bow"),
        ({"machine": "bow:tiles_per_ipu=1.5"}, "'1.5' is no whole number"),
        ({"machine": "bow:tiles_per_ipu=100,tiles_per_ipu=200"}, "gives tiles_per_ipu twice"),
        ({"machine": "bow:memory_bytes_per_tile=210000"}, "leaves none for data"),
        ({"machine": "gpu"}, "JAX computes on cpu here"),
        ({"machine": "bow:4"}, "'4' is no figure of a chip"),
        ({"machine": "bow:tiles_per_ipu=some"}, "'some' is no number above 0"),
    ],
)
def test_what_it_does_not_compute_is_refused_at_once(given, words):
    with pytest.raises(pi.UsageError, match=words):
        pi.rks(WATER[0], **{"machine": "bow", "grid_level": 0} | given)


def test_what_is_no_machine_is_refused(on_bow):
    with pytest.raises(TypeError, match=r"a chip is needed, not a int|violates type hint"):
        pi.rks(WATER[0], machine=3)
    with pytest.raises(TypeError, match=r"a machine is needed, not a str|violates type hint"):
        pi.Solver(LEVEL, "bow")
    with pytest.raises(pi.UsageError, match="contradicts the solver"):
        pi.rks(WATER[0], machine="gc200", solver=on_bow)


def test_a_chip_of_ones_own_has_other_figures():
    own = described_target("bow:tile_clock_frequency=1.5e9, tiles_per_ipu=1216")
    assert float(own.tile_clock_frequency) == 1.5e9
    assert int(own.tiles_per_ipu) == 1216
    assert own.tiles_per_ipu.how == "estimated"
    assert own.memory_bytes_per_tile == BOW.memory_bytes_per_tile
    assert own.name == "bow:tile_clock_frequency=1500000000,tiles_per_ipu=1216"
    assert described_target("GC200") is GC200
    assert described_target("bow:tiles_per_ipu=1472") is BOW
    assert machine(target("bow")) == machine("BOW")
    assert machine("bow") != machine("bow", run_vertices=True)
    assert len({machine("bow"), machine("Bow"), machine(BOW), machine("gc200")}) == 2


@pytest.mark.long
def test_modes_of_the_caller_do_not_matter(on_bow):
    level = replace(LEVEL, max_cycles=41)  # no other program has it
    with jax.enable_x64(True):
        wide = pi.rks(HYDROGEN, solver=pi.Solver(level, machine("bow")))
    assert wide.ipu_cycles_low == pi.rks(HYDROGEN, solver=on_bow).ipu_cycles_low


def test_f_functions_of_any_element_are_refused():
    bromide = pi.Molecule([35, 1], [[0.0, 0, 0], [0, 0, 2.7]])
    with pytest.raises(pi.InvalidMolecule, match="has f functions"):
        pi.rks(bromide, basis="dzp", machine="bow")


@pytest.mark.long
def test_tiles_that_are_not_there_are_the_molecules_trouble():
    (row,) = pi.rks([WATER[0]], grid_level=0, machine="bow:tiles_per_ipu=2").status
    assert "too large for a simulated bow:tiles_per_ipu=2: the program uses tile" in row


@pytest.mark.long
def test_the_program_of_a_molecule_can_be_batched():
    """All molecules are in one loop, which ends with the last of them."""
    core, (tables, first) = pi.rks_core(HYDROGEN, LEVEL, lambda shape: machine_of(BOW, 1, shape))
    far = replace(HYDROGEN, positions=3.0 * HYDROGEN.positions)
    second = pi.rks_core(far, LEVEL, lambda shape: machine_of(BOW, 1, shape))[1][1]
    both = jax.tree.map(lambda *x: np.stack(x), first, second)
    out, profile = simulate(jax.vmap(core, in_axes=(None, 0)), BOW)(tables, both)
    each = [jax.jit(core)(tables, one) for one in (first, second)]
    np.testing.assert_array_equal(out.cycles, [one.cycles for one in each])
    np.testing.assert_allclose(out.orbital_energy[1], each[1].orbital_energy, atol=1e-5)
    assert any("is in lock-step" in note for note in profile.notes)
