"""Every parameter of the public functions has an effect: a new one without a case fails here.

A level is followed in two steps.  Each of its fields changes what `rks` returns, and each function
that takes a level computes with the fields that it was given.  Everything is called as users call
it, without a solver of the test's own.
"""

import functools
import inspect
from dataclasses import fields
from typing import get_type_hints

import jax
import numpy as np
import pytest
from ase import Atoms
from oracle import HYDROGEN

import pyscf_ipu as pi
from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.settings import LevelKeywords
from pyscf_ipu.solver.solver import Solver

HELIUM, BERYLLIUM = (pi.Molecule([z], [[0.0, 0.0, 0.0]]) for z in (2, 4))
TORN = pi.Molecule([1, 1, 1], [[0, 0, 0], [0, 0, 1.4], [0.5, 2.5, 4.0]], charge=1)
"""H3+ without symmetry, which takes more than two cycles."""
CHEAP = {"xc": "hf", "grid_level": (20, 50), "prune": False}
LDA = CHEAP | {"xc": "lda"}
LEVEL = tuple(get_type_hints(LevelKeywords))


@functools.cache
def computed(mol, given):
    return pi.rks(mol, **dict(given))


def result(mol=HYDROGEN, **given):
    """`rks` of a level, computed once."""
    return computed(mol, tuple(given.items()))


def energies_differ(one, other):
    return np.isfinite([one.energy, other.energy]).all() and one.energy != other.energy


def refuses_forces(one, other):
    del one
    with pytest.raises(ValueError, match="before forces are right"):
        pi.rks(HYDROGEN, **CHEAP, accuracy=other.settings.accuracy, forces=True)
    return pi.rks(HYDROGEN, **CHEAP, accuracy="properties", forces=True).forces is not None


FIELDS = {
    "basis": (HYDROGEN, CHEAP, "6-31g", energies_differ),
    "xc": (HYDROGEN, CHEAP, "lda", energies_differ),
    "grid_level": (HYDROGEN, LDA, (25, 50), energies_differ),
    "precision": (HYDROGEN, CHEAP, "float64", energies_differ),
    "cart": (
        BERYLLIUM,
        CHEAP | {"basis": "6-31g*"},
        True,
        lambda one, other: (len(one.mo_energy), len(other.mo_energy)) == (14, 15),
    ),
    "max_cycles": (
        TORN,
        LDA,
        2,
        lambda one, other: one.converged and (other.status, other.cycles) == ("not_converged", 2),
    ),
    "prune": (HYDROGEN, LDA, True, energies_differ),
    "grid_kind": (HYDROGEN, LDA, "gaussian", energies_differ),
    "jk": (
        HYDROGEN,
        CHEAP,
        "ri",
        lambda one, other: (
            (one.jk, other.jk) == ("exact", "ri") and 1e-6 < abs(other.energy - one.energy) < 1e-3
        ),
    ),
    "fixed_cycles": (HYDROGEN, CHEAP, 13, lambda one, other: one.cycles < other.cycles == 13),
    "accuracy": (HYDROGEN, CHEAP, "energy", refuses_forces),
    "first_cycles": (
        TORN,
        LDA,
        "full",
        lambda one, other: one.commutator_norm != other.commutator_norm,
    ),
    "nlc_grid": (HYDROGEN, CHEAP | {"xc": "b97m-v"}, (10, 50), energies_differ),
    "history": (HYDROGEN, CHEAP, True, lambda one, other: not one.history and other.history),
}
"""By field: a molecule, a level, another value of the field, and how the results differ."""


def test_every_field_of_a_level_has_a_case():
    assert list(FIELDS) == [field.name for field in fields(pi.Settings)]


LONG = ("cart", "prune", "grid_kind", "first_cycles", "nlc_grid", "history")
"""Each needs programs of its own, and has tests of its own; that they arrive is tested below."""


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=pytest.mark.long) if x in LONG else x for x in FIELDS]
)
def test_a_field_changes_the_result(name):
    mol, level, value, differ = FIELDS[name]
    assert level.get(name) != value
    assert differ(result(mol, **level), result(mol, **level | {name: value}))


def atoms_of(mol):
    return Atoms(mol.numbers, mol.positions * BOHR_TO_ANGSTROM)


def energy_of_atoms(mol, **given):
    """What an ASE calculator computes."""
    atoms = atoms_of(mol)
    atoms.calc = pi.Calculator(**given)
    return atoms.get_potential_energy()


TAKE_A_LEVEL = {
    "rks": pi.rks,
    "uks": pi.uks,
    "forces": pi.forces,
    "optimize": pi.optimize,
    "frequencies": pi.frequencies,
    "Calculator": energy_of_atoms,
}


class Stopped(Exception):
    """The engine would compute now."""


@pytest.mark.parametrize("name", LEVEL)
@pytest.mark.parametrize("function", TAKE_A_LEVEL)
def test_a_level_is_what_is_computed_with(monkeypatch, function, name):
    used = []

    def run(solver, *_, **__):
        used.append(solver.settings)
        raise Stopped

    monkeypatch.setattr(Solver, "compute", run)
    level = {"precision": "float64"} | FIELDS[name][1] | {name: FIELDS[name][2]}
    with pytest.raises((Stopped, UsageError)) as end:
        TAKE_A_LEVEL[function](HYDROGEN, **level)
    if name == "accuracy" and function in ("forces", "frequencies"):
        assert "before forces are right" in str(end.value)
    else:
        assert used == [pi.Settings(**level)]


def batches(monkeypatch, function, **given):
    """How many batches four molecules are computed in."""
    counts, real = [], Solver.compute

    def run(solver, shape, mols, *args, **kwargs):
        counts.append(len(mols))
        return real(solver, shape, mols, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Solver, "compute", run)
        function([HYDROGEN] * 4, **CHEAP, **given)
    assert sum(counts) == 4
    return len(counts)


def contradicts(function, *molecules):
    """Whether a function computes with the solver that it is given."""
    with pytest.raises(ValueError, match="xc='lda' contradicts the solver"):
        function(*molecules, solver=solver_of_hf(), xc="lda")
    return True


@functools.cache
def solver_of_hf():
    return pi.Solver(pi.Settings(**CHEAP, precision="float64"))


@functools.cache
def frequencies(**given):
    return pi.frequencies(HYDROGEN, solver=solver_of_hf(), **given)


@functools.cache
def optimized(**given):
    return pi.optimize(HYDROGEN, **CHEAP, **given)


def throws(function):
    with pytest.raises(pi.ConvergenceError):
        function([TORN], **LDA, max_cycles=2, throw=True)
    return function([TORN], **LDA, max_cycles=2) is not None


def charge_counts():
    """HeH has an odd number of electrons, HeH+ has two."""
    cation = pi.Molecule([2, 1], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.5]])
    with pytest.raises(pi.InvalidMolecule, match="odd number of electrons"):
        energy_of_atoms(cation, **CHEAP)
    return np.isfinite(energy_of_atoms(cation, **CHEAP, charge=1))


def slope_of(mol, **level):
    return jax.jit(pi.energy_function(mol, pi.Settings(**CHEAP | level)))(mol.positions)


OTHERS = {
    "rks": {
        "molecules": lambda _: (
            result(**CHEAP).energy.shape == () and len(pi.rks([], **CHEAP).energy) == 0
        ),
        "throw": lambda _: throws(pi.rks),
        "orbitals": lambda _: (
            result(**CHEAP).mo_coeff is None
            and result(**CHEAP, orbitals=True).mo_coeff.shape == (2, 2)
        ),
        "forces": lambda _: (
            result(**CHEAP).forces is None and result(**CHEAP, forces=True).forces.shape == (2, 3)
        ),
        "stability": lambda _: (
            result(**CHEAP).stable is None and result(**CHEAP, stability=True).stable
        ),
        "stable_unrestricted": lambda _: (
            result(**CHEAP).stable_unrestricted is None
            and result(**CHEAP, stable_unrestricted=True).stable_unrestricted
        ),
        "history": lambda _: not result(**CHEAP).history and result(**CHEAP, history=True).history,
        "workers": lambda patch: (
            [batches(patch, pi.rks, workers=n) for n in (1, 2, 4)] == [1, 2, 4]
        ),
        "machine": lambda _: (
            result(**CHEAP).ipu_cycles_low is None
            and pi.rks(HYDROGEN, **CHEAP, machine="bow").ipu_cycles_low > 1e5
        ),
        "solver": lambda _: contradicts(pi.rks, HYDROGEN),
    },
    "uks": {
        "molecules": lambda _: len(pi.uks([HYDROGEN] * 2, **CHEAP).energy) == 2,
        "guess": lambda _: (
            pi.uks(TORN, **CHEAP, guess="mixed").cycles > pi.uks(TORN, **CHEAP).cycles
        ),
        "throw": lambda _: throws(pi.uks),
        "orbitals": lambda _: pi.uks(HYDROGEN, **CHEAP, orbitals=True).mo_coeff.shape == (2, 2, 2),
        "forces": lambda _: pi.uks(HYDROGEN, **CHEAP, forces=True).forces.shape == (2, 3),
        "stability": lambda _: pi.uks(HYDROGEN, **CHEAP, stability=True).stable,
        "history": lambda _: pi.uks(HYDROGEN, **CHEAP, history=True).history,
        "workers": lambda patch: [batches(patch, pi.uks, workers=n) for n in (1, 2)] == [1, 2],
        "solver": lambda _: contradicts(pi.uks, HYDROGEN),
    },
    "forces": {
        "molecules": lambda _: len(pi.forces([HYDROGEN] * 2, **CHEAP)) == 2,
        "throw": lambda _: throws(pi.forces),
        "workers": lambda patch: [batches(patch, pi.forces, workers=n) for n in (1, 2)] == [1, 2],
        "solver": lambda _: contradicts(pi.forces, HYDROGEN),
    },
    "optimize": {
        "molecules": lambda _: len(pi.optimize([], **CHEAP)) == 0 and optimized().energy < 0,
        "max_steps": lambda _: (
            len(optimized(max_steps=0).energies) == 1 < len(optimized().energies)
        ),
        "max_force_hartree_per_bohr": lambda _: (
            len(optimized(max_force_hartree_per_bohr=1e-9, max_steps=9).energies)
            > len(optimized().energies)
        ),
        "solver": lambda _: contradicts(pi.optimize, HYDROGEN),
    },
    "frequencies": {
        "molecule": lambda _: frequencies().molecule is HYDROGEN,
        "temperature_kelvin": lambda _: (
            frequencies(temperature_kelvin=500.0).entropy > frequencies().entropy
        ),
        "pressure_pascal": lambda _: (
            frequencies(pressure_pascal=1e3).entropy > frequencies().entropy
        ),
        "symmetry_number": lambda _: frequencies(symmetry_number=2).entropy < frequencies().entropy,
        "step_bohr": lambda _: frequencies(step_bohr=0.1).wavenumbers != frequencies().wavenumbers,
        "solver": lambda _: contradicts(pi.frequencies, HYDROGEN),
    },
    "Calculator": {
        "charge": lambda _: charge_counts(),
        "solver": lambda _: contradicts(pi.Calculator),
    },
    "energy_function": {
        "molecule": lambda _: slope_of(HYDROGEN) != slope_of(HELIUM),
        "settings": lambda _: slope_of(HYDROGEN) != slope_of(HYDROGEN, basis="6-31g"),
    },
}
"""By function and parameter: whether the parameter has its effect."""


@pytest.mark.parametrize("function", OTHERS)
def test_every_parameter_has_a_case(function):
    given = inspect.signature(getattr(pi, function)).parameters
    assert sorted(OTHERS[function]) == sorted(given.keys() - {*LEVEL, "self"})
    assert function == "energy_function" or given.keys() > {*LEVEL}


SHOWN = ("machine",)
"""A program of its own, which `ipu/engine/test_chip_machine.py` has, too."""


@pytest.mark.parametrize(
    ("function", "parameter"),
    [
        pytest.param(name, one, marks=pytest.mark.long if one in SHOWN else [])
        for name, cases in OTHERS.items()
        for one in cases
    ],
)
def test_a_parameter_has_an_effect(monkeypatch, function, parameter):
    assert OTHERS[function][parameter](monkeypatch)
