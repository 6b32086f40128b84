"""Programs: compiled once per shape, kept on disk, refused when they would not fit."""

import copy
import os
import pickle
import subprocess
import sys

import jax
import jax.monitoring
import numpy as np
import pytest
from oracle import HYDROGEN, SMALL, small

from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.base.errors import InvalidMolecule, TooLarge
from pyscf_ipu.solver import platform
from pyscf_ipu.solver.memory import program_bytes

LEVEL = Settings(xc="hf", grid_level=0)
COMPILED = "/jax/core/compile/backend_compile_duration"


@pytest.fixture(scope="module")
def compilations():
    """Counts what XLA compiles in this process: JAX offers no way to take a listener back."""
    seen = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: seen.append(seconds) if event == COMPILED else None
    )
    jax.jit(lambda x: 3.0 * x - 1.0).lower(np.float32(1.0)).compile()
    assert seen, "the listener must hear of compilations"
    return seen


@pytest.fixture(scope="module")
def solver():
    solver = Solver(LEVEL)
    event = solver.compile(solver.shape(HYDROGEN))
    assert event.shape == solver.shape(HYDROGEN)
    assert event.seconds > 0
    return solver


def stretched(factor):
    return Molecule(HYDROGEN.numbers, factor * HYDROGEN.positions)


def test_a_shape_is_compiled_once(solver, compilations):
    """Other geometries, other batch sizes, another call: no compilation of anything."""
    rks(HYDROGEN, solver=solver, orbitals=True)
    before = len(compilations)
    assert solver.compile(solver.shape(HYDROGEN)) is None
    rks([stretched(f) for f in np.linspace(0.9, 1.4, 40)], solver=solver, orbitals=True)
    rks(stretched(1.1), solver=solver)
    assert len(compilations) == before
    assert len(solver._programs) == 1


def test_a_solver_is_pickled_without_its_programs(solver):
    again = pickle.loads(pickle.dumps(solver))
    assert again.settings == solver.settings
    assert solver._programs
    assert not again._programs
    assert copy.deepcopy(solver) is solver, "a copy in the process has no need to compile"


def test_all_small_molecules_are_one_program():
    solver = Solver(LEVEL)
    assert len({solver.shape(small(name)) for name in SMALL}) == 1


def test_coarse_shapes_are_shapes_of_other_molecules():
    """So a program that a small run compiled serves a long one, too."""
    solver = Solver(LEVEL)
    naphthalene, decalin = (
        Molecule([6] * 10 + [1] * n, np.random.default_rng(0).normal(size=(10 + n, 3)))
        for n in (8, 18)
    )
    assert solver.shape(naphthalene).n_hydrogen == 9
    assert solver.shape(naphthalene, coarse=True).n_hydrogen == 16
    assert solver.shape(decalin, coarse=True) == solver.shape(decalin)


def test_a_batch_is_checked(solver):
    shape = solver.shape(HYDROGEN)
    size = solver.batch_size(shape)
    for wrong in (0, size + 1):
        with pytest.raises(ValueError, match=f"{wrong} molecules in a batch.*1 to {size}"):
            solver.run(shape, [HYDROGEN] * wrong)


def test_a_full_batch_and_a_part_of_one_agree(solver):
    shape = solver.shape(HYDROGEN)
    size = solver.batch_size(shape)
    assert size > 1
    mols = [stretched(1 + 0.02 * i) for i in range(size)]
    full = [one.energy for one in solver.run(shape, mols)]
    part = [one.energy for one in solver.run(shape, mols[-2:])]
    assert full[-2:] == part
    assert len(set(full)) == size


def test_number_of_aos(solver):
    assert solver.n_ao([6, 1, 1, 1, 1]) == 9
    assert Solver(Settings(basis="6-31g*", grid_level=0)).n_ao([6, 1, 1, 1, 1]) == 22


def test_too_large_for_the_memory(monkeypatch, solver):
    monkeypatch.setattr(platform, "available_bytes", lambda: 2**30)
    rng = np.random.default_rng(0)
    large = Molecule([6] * 40 + [1] * 82, rng.normal(size=(122, 3)) * 10)
    with pytest.raises(InvalidMolecule, match=r"too large: 282 AOs need about [\d.]+ GiB.*smaller"):
        solver.shape(large)
    row = rks([large, HYDROGEN], solver=solver)
    assert row.status[0].startswith("invalid: ")
    assert row.status[1] == "converged"


def test_the_memory_estimate_grows_with_the_work():
    small_shape = Solver(LEVEL).shape(small("methanol"))
    large = Molecule([6] * 24 + [1] * 50, np.random.rand(74, 3) * 20)  # more than compiling takes
    large_shape = Solver(LEVEL).shape(large)
    assert program_bytes(large_shape, LEVEL) > program_bytes(small_shape, LEVEL)
    doubled = Settings(xc="hf", precision="float64", grid_level=0)
    assert program_bytes(large_shape, doubled) > 1.5 * program_bytes(large_shape, LEVEL) - 3e8


def test_the_batch_is_what_the_memory_holds(monkeypatch):
    solver = Solver(LEVEL)
    shape = solver.shape(small("methanol"))
    assert (shape.n_ao <= 64, solver.batch_size(shape)) == (True, 16)
    whole = solver.memory_bytes(shape)
    one = (whole - program_bytes(shape, LEVEL)) / 16
    assert one > 2 * 4 * shape.n_ao**2  # orbitals and density of each molecule
    for held, size in ((16.5, 16), (15.5, 8), (7.5, 4), (1.5, 1), (-9.0, 1)):
        there = round((program_bytes(shape, LEVEL) + held * one) / 0.8)
        monkeypatch.setattr(platform, "available_bytes", lambda there=there: there)
        little = Solver(LEVEL)
        assert little.batch_size(shape) == size
    assert whole > little.memory_bytes(shape) > program_bytes(shape, LEVEL)
    assert solver.batch_size(shape) == 16  # a solver keeps to what it began with


def test_a_nan_is_a_status_of_its_own(solver):
    """Whatever the device returns for one molecule, the host must say so and keep the rest."""
    broken = Solver(LEVEL)
    shape = solver.shape(HYDROGEN)
    size = solver.batch_size(shape)

    def program(*args):
        out = solver._programs[shape, size](*args)
        terms = jax.tree.map(lambda x: x.at[0].set(np.nan), out.terms)
        return out._replace(terms=terms)

    broken._programs[shape, size], broken._tables[shape] = program, solver._tables[shape]
    found = broken.run(shape, [HYDROGEN, stretched(1.1)])
    assert [one.status for one in found] == ["nan", "converged"]
    assert not found[0].converged


def test_unusable_settings_are_refused_before_anything_is_compiled():
    with pytest.raises(ValueError, match="unknown functional"):
        Solver(Settings(xc="m06", grid_level=0))


CACHED = """
import sys
from pyscf_ipu import Molecule, Settings, Solver, enable_disk_cache
print(enable_disk_cache(sys.argv[1]))
solver = Solver(Settings(xc="hf", grid_level=0))
mol = Molecule([1, 1], [[0, 0, 0], [0, 0, 1.4]])
event = solver.compile(solver.shape(mol))
print(event.cached, solver.run(event.shape, [mol])[0].energy.hex())
"""


@pytest.mark.long
def test_a_second_process_compiles_nothing(tmp_path):
    def run():
        command = [sys.executable, "-c", CACHED, str(tmp_path / "cache")]
        # JAX's own cache, which the tests enable, would give the first one, too.
        clean = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=300, env=clean
        )
        assert done.returncode == 0, done.stderr
        folder, line = done.stdout.splitlines()[-2:]
        assert folder == str(tmp_path / "cache")
        return line.split()

    first, second = run(), run()
    assert first[0] == "False"
    assert second[0] == "True"
    assert first[1] == second[1], "a cached program must give the same bits"


@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_more_aos_than_int32_can_count_pairs_of(precision):
    atoms = 73  # of neon: 365 AOs
    where = 5.0 * np.stack(np.meshgrid(*[np.arange(5)] * 3), axis=-1).reshape(-1, 3)[:atoms]
    neon = Molecule(np.full(atoms, 10), where)
    settings = Settings(grid_level=0, precision=precision)
    with pytest.raises(TooLarge, match=r"at most 361: use jk='ri', or precision='float64'"):
        Solver(settings).shape(neon)
