"""The program of open shells against PySCF's UKS in float64, and against closed shells."""

import functools
from dataclasses import replace

import jax
import numpy as np
import pytest
from oracle import WATER, mole_of, molecule
from pyscf import dft, scf

from pyscf_ipu import Settings, Solver
from pyscf_ipu.gradient import gradients
from pyscf_ipu.kohn_sham.batch import sequential
from pyscf_ipu.kohn_sham.program import State, energies
from pyscf_ipu.machines.machine import PROCESSOR
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.xc.registry import functional

LONG = pytest.mark.long

SPECIES = {  # unpaired electrons
    "water": (WATER, 0),
    "methyl": (molecule("C 0 0 0; H 0 1.079 0; H 0.9344 -0.5395 0; H -0.9344 -0.5395 0", 1), 1),
    "dioxygen": (molecule("O 0 0 0; O 0 0 1.208"), 2),
    "hydrogen atom": (molecule("H 0 0 0", -1), 1),
    "cyano": (molecule("C 0 0 0; N 0 0 1.172", -1), 1),
    "nitrogen atom": (molecule("N 0 0 0", 1), 3),
    "water cation": (molecule("O 0 0 0; H 0.8 0.58 0; H -0.8 0.58 0", 2), 1),
}
CHARGE = {"methyl": 0, "hydrogen atom": 0, "cyano": 0, "nitrogen atom": 0, "water cation": 1}


@functools.cache
def species(name):
    mol, unpaired = SPECIES[name]
    return type(mol)(mol.numbers, mol.positions, CHARGE.get(name, mol.charge)), unpaired


def computed(mol, unpaired, settings, forces=False):
    """The solution of one open shell, by the program as a processor has it, or its forces."""
    mol = replace(mol, multiplicity=unpaired + 1)
    shape, counts = Solver(settings).shape(mol), mol.n_occupied(settings.basis)
    with settings.numerics.scope():
        data = conformer.conformer(mol, shape, settings, spins="atoms")
        batch = jax.tree.map(lambda x: np.asarray(x)[None], data)
        of_shape, one = tables.shape_tables(shape, settings), np.int32(1)
        out = jax.jit(sequential(energies(shape, settings, PROCESSOR)))(of_shape, batch, one)
        if forces:
            state = State(batch, out.density, out.orbitals, levels=out.orbital_energy)
            by_slots = jax.jit(sequential(gradients(shape, settings)))(of_shape, state, one)[0]
            order = conformer.slot_order(mol, shape, settings)
            gradient = np.zeros((mol.n_atoms, 3))
            gradient[order[order >= 0]] = np.asarray(by_slots)[order >= 0]
            return -gradient, counts
        return jax.tree.map(lambda x: np.asarray(x)[0], out), counts


def energy_of(solution):
    """The sum of its terms."""
    return sum(float(t.hi) + float(t.lo) for t in solution.terms)


def even(mol):
    """The same atoms with an even number of electrons."""
    return type(mol)(mol.numbers, mol.positions, -(int(mol.numbers.sum()) % 2))


def oracle(mol, unpaired, settings):
    """PySCF's UKS, converged tightly."""
    mole = mole_of(even(mol), settings.basis)
    mole.charge, mole.spin = mol.charge, unpaired
    mole.build()
    if settings.xc == "hf":
        field = scf.UHF(mole)
    else:
        field = dft.UKS(mole, xc=functional(settings.xc).pyscf_name)
        if functional(settings.xc).vv10 is None:
            field.nlc = 0
        else:
            field.nlcgrids.level = settings.grid_level
        field.grids.level = settings.grid_level
    if settings.jk == "ri":
        field = field.density_fit()
    field.conv_tol, field.conv_tol_grad, field.max_cycle = 1e-12, 1e-7, 200
    field.kernel()
    assert field.converged
    return field


def level(xc, **changes):
    return Settings(**{"xc": xc, "precision": "float64", "grid_level": 0, "nlc_grid": 0} | changes)


@pytest.mark.parametrize(
    ("name", "xc", "jk"),
    [
        ("methyl", "b3lyp", "exact"),
        ("dioxygen", "pbe", "ri"),
        pytest.param("hydrogen atom", "lda", "exact", marks=LONG),
        pytest.param("hydrogen atom", "r2scan", "exact", marks=LONG),
        pytest.param("dioxygen", "hf", "exact", marks=LONG),
        pytest.param("dioxygen", "wb97x", "exact", marks=LONG),
        pytest.param("dioxygen", "wb97m-v", "exact", marks=LONG),
        pytest.param("methyl", "wb97x", "ri", marks=LONG),
        pytest.param("methyl", "tpss", "exact", marks=LONG),
        pytest.param("cyano", "m06-2x", "exact", marks=LONG),
        pytest.param("nitrogen atom", "b3lyp", "ri", marks=LONG),
        pytest.param("water cation", "pbe0", "exact", marks=LONG),
    ],
)
def test_energies_and_levels_are_pyscfs(name, xc, jk):
    mol, unpaired = species(name)
    settings = level(xc, jk=jk)
    found, (n_alpha, n_beta) = computed(mol, unpaired, settings)
    field = oracle(mol, unpaired, settings)
    assert bool(found.converged)
    assert abs(energy_of(found) - field.e_tot) < 1e-8
    for mine, theirs, n in zip(
        found.orbital_energy, field.mo_energy, (n_alpha, n_beta), strict=True
    ):
        np.testing.assert_allclose(mine[:n], np.sort(theirs)[:n], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "xc", "jk"),
    [
        ("methyl", "b3lyp", "exact"),
        pytest.param("cyano", "wb97x", "ri", marks=LONG),
        pytest.param("cyano", "pbe", "ri", marks=LONG),
        pytest.param("dioxygen", "wb97x", "exact", marks=LONG),
        pytest.param("water cation", "r2scan", "exact", marks=LONG),
        pytest.param("dioxygen", "wb97m-v", "exact", marks=LONG),
    ],
)
def test_forces_are_pyscfs(name, xc, jk):
    mol, unpaired = species(name)
    settings = level(xc, jk=jk)
    found, _ = computed(mol, unpaired, settings, forces=True)
    field = oracle(mol, unpaired, settings).nuc_grad_method()
    field.grid_response = True
    np.testing.assert_allclose(found, -field.kernel(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("xc", ["b3lyp", pytest.param("r2scan", marks=LONG)])
def test_a_closed_shell_has_the_energy_of_closed_shells(xc):
    settings = level(xc)
    found, _ = computed(WATER, 0, settings)
    (right,) = Solver(settings).run(Solver(settings).shape(WATER), [WATER])
    assert abs(energy_of(found) - right.energy) < 1e-9
    np.testing.assert_allclose(found.orbital_energy[0], found.orbital_energy[1], atol=1e-8)


@pytest.mark.parametrize("precision", ["float32", pytest.param("mixed", marks=LONG)])
def test_narrow_precisions(precision):
    mol, unpaired = species("methyl")
    found, _ = computed(mol, unpaired, level("b3lyp", precision=precision))
    field = oracle(mol, unpaired, level("b3lyp"))
    assert bool(found.converged)
    assert abs(energy_of(found) - field.e_tot) < {"float32": 2e-5, "mixed": 1e-8}[precision]
