"""`uks`: radicals, ions, triplets and atoms against PySCF's UKS, and what it refuses."""

import functools
import subprocess
import sys

import numpy as np
import pytest
from oracle import WATER
from pyscf.tools import molden

import pyscf_ipu as pi
from pyscf_ipu.commands.report import pyscf_field
from pyscf_ipu.molecule.molecule import Molecule

LEVEL = {"grid_level": 0, "precision": "float64"}
METHYL = Molecule.from_smiles("[CH3]")
OXYGEN = Molecule([8, 8], [[0, 0, 0], [0, 0, 2.28]], multiplicity=3)
HYDROGEN = Molecule([1], [[0.0, 0.0, 0.0]], multiplicity=2)
TORN = Molecule([1, 1], [[0.0, 0.0, 0.0], [0.0, 0.0, 6.0]])


@functools.cache
def oracle(mol, **changes):
    settings = pi.Settings(**LEVEL | changes)
    return pyscf_field(mol, settings, unrestricted=True)


@pytest.mark.slow
def test_radicals_triplets_and_atoms_are_pyscfs():
    result = pi.uks([METHYL, OXYGEN, HYDROGEN], forces=True, orbitals=True, **LEVEL)
    assert result.status == ["converged"] * 3
    for i, mol in enumerate((METHYL, OXYGEN, HYDROGEN)):
        field = oracle(mol)
        alpha, beta = field.nelec
        levels = field.mo_energy
        assert abs(result.energy[i] - field.e_tot) < 1e-7
        n_spins = 2 if beta else 1  # PySCF has no potential for an electron of an empty spin
        np.testing.assert_allclose(result.mo_energy[i][:n_spins], levels[:n_spins], atol=2e-6)
        assert abs(result.s_squared[i] - field.spin_square()[0]) < 1e-5
        homo = max(levels[0][alpha - 1], levels[1][beta - 1] if beta else -np.inf)
        empty = min(one[n] for one, n in zip(levels, field.nelec, strict=True) if n < len(one))
        assert abs(result.homo[i] - homo) < 2e-6
        if beta:
            assert abs(result.lumo[i] - empty) < 2e-6
            assert abs(result.gap[i] - (empty - homo)) < 4e-6
        populations = field.mulliken_pop(verbose=0)
        np.testing.assert_allclose(result.mulliken_charges[i], populations[1], atol=1e-5)
        np.testing.assert_allclose(result.density_matrix[i], field.make_rdm1(), atol=1e-5)
        assert abs(result.spin_populations[i].sum() - (mol.multiplicity - 1)) < 1e-9
    dipole = oracle(METHYL).dip_moment(unit="AU", verbose=0)
    np.testing.assert_allclose(result.dipole[0], dipole, atol=1e-5)
    gradient = oracle(METHYL).nuc_grad_method().set(grid_response=True).kernel()
    np.testing.assert_allclose(result.forces[0], -gradient, atol=1e-6)


def test_a_closed_shell_has_the_energy_of_rks():
    closed, opened = pi.rks(WATER, **LEVEL), pi.uks(WATER, **LEVEL)
    assert abs(closed.energy - opened.energy) < 1e-9
    assert abs(opened.s_squared) < 1e-9
    np.testing.assert_allclose(opened.mo_energy, [closed.mo_energy] * 2, atol=1e-7)
    np.testing.assert_allclose(opened.spin_populations, 0.0, atol=1e-9)
    assert closed.s_squared is None
    assert closed.spin_populations is None


@pytest.mark.parametrize("guess", ["mixed", [1.0, -1.0]])
def test_the_spins_of_a_torn_bond_part(guess):
    result = pi.uks(TORN, guess=guess, **LEVEL)
    atom = pi.uks(HYDROGEN, **LEVEL)
    assert result.converged
    assert abs(result.energy - 2 * atom.energy) < 1e-3
    assert result.s_squared == pytest.approx(1.0, abs=1e-2)
    np.testing.assert_allclose(np.abs(result.spin_populations), 1.0, atol=1e-2)


@pytest.mark.long
def test_psi4_has_published_the_same():
    """Psi4 with (99, 590) points, in the reference data of QCEngine's tests (BSD-3)."""
    mol = pi.Molecule.from_symbols(
        ["B", "H", "H", "H"],
        [[0.10369114, 0, 0], [-1.13269886, 0, 0], [3, 0.37149, 0], [3, -0.37149, 0]],
        unit="angstrom",
        charge=1,
        multiplicity=2,
    )
    result = pi.uks(mol, xc="pbe", basis="cc-pvdz", grid_level=(99, 590), precision="float64")
    assert abs(result.energy + 26.04681636799003) < 1e-6


@pytest.mark.long
def test_an_atom_without_full_orbitals_below_empty_ones_is_fractional():
    """PySCF does not converge for bromine either: 0.9 electrons change places in each cycle."""
    result = pi.uks(pi.Molecule([35], [[0, 0, 0]], multiplicity=2), xc="pbe", precision="float64")
    assert (result.status, result.converged) == ("fractional", False)


def test_what_hangs_on_a_density():
    result = pi.uks(METHYL, orbitals=True, **LEVEL)
    assert result.bond_orders.sum(axis=1)[0] == pytest.approx(3.0, abs=0.1)
    assert result.spin_populations_lowdin.sum() == pytest.approx(1.0, abs=1e-9)
    assert result.charges_lowdin.sum() == pytest.approx(0.0, abs=1e-9)
    text = repr(result)
    assert "multiplicity=2" in text
    assert "s_squared" in text
    assert "0.75 without other spins" in text
    record = result.to_dict()
    assert record["molecule"]["multiplicity"] == 2
    assert len(record["mo_energy"]) == 2


def test_orbitals_of_both_spins_are_written(tmp_path):
    result = pi.uks(METHYL, orbitals=True, **LEVEL)
    result.to_molden(tmp_path / "methyl.molden")
    _, levels, _coefficients, occupations, _, spins = molden.load(str(tmp_path / "methyl.molden"))
    spins = np.ravel(spins).tolist()
    assert spins.count("ALPHA") == spins.count("BETA") == 8
    assert np.sum(occupations) == 9
    np.testing.assert_allclose(np.ravel(levels), np.ravel(result.mo_energy), atol=1e-8)
    for what, spin in (("spin", "alpha"), ("homo", "beta"), (0, "alpha")):
        result.to_cube(tmp_path / "one.cube", what, points=4, spin=spin)
    with pytest.raises(pi.UsageError, match="spin='up': give one of 'alpha', 'beta'"):
        result.to_cube(tmp_path / "one.cube", "homo", spin="up")


def test_what_does_not_fit_is_refused():
    with pytest.raises(pi.UsageError, match="2 guesses for 1 mol"):
        pi.uks([METHYL], guess=["atoms", "mixed"])
    with pytest.raises(pi.UsageError, match="needs 4 numbers"):
        pi.uks(METHYL, guess=[1.0])
    with pytest.raises(pi.UsageError, match="no atom has more"):
        pi.uks(METHYL, guess=[0.0, 0.0, 0.0, 2.0])
    with pytest.raises(pi.UsageError, match="give 'atoms', 'mixed'"):
        pi.uks(METHYL, guess="minao")
    with pytest.raises(pi.InvalidMolecule, match=r"open shell, of multiplicity 2.*pi\.uks"):
        pi.rks(METHYL)
    with pytest.raises(pi.InvalidMolecule, match="do not go with multiplicity 4"):
        pi.uks(Molecule(WATER.numbers, WATER.positions, multiplicity=4))
    rows = pi.uks([METHYL, Molecule([2], [[0, 0, 0]], multiplicity=5)], **LEVEL)
    assert rows.status[0] == "converged"
    assert rows.status[1].startswith("invalid")


def test_pyscfs_spin_is_refused_by_name():
    call = "import pyscf_ipu as pi; pi.Molecule([1], [[0, 0, 0]], spin=1)"
    run = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=False)
    assert "'spin': give multiplicity=, which is 2S + 1" in run.stderr


def test_readers_know_open_shells(tmp_path):
    assert METHYL.multiplicity == 2
    assert Molecule.from_smiles("[CH2]", multiplicity=1).multiplicity == 1
    assert Molecule.from_pyscf(oracle(OXYGEN).mol).multiplicity == 3
    atoms = OXYGEN.to_ase()
    assert Molecule.from_ase(atoms).multiplicity == 3
    del atoms.info["multiplicity"]
    atoms.set_initial_magnetic_moments([1.0, 1.0])
    assert Molecule.from_ase(atoms).multiplicity == 3
    atoms.calc = pi.Calculator(grid_level=0)
    assert atoms.get_magnetic_moment() == 2.0
    np.testing.assert_allclose(atoms.get_magnetic_moments(), 1.0, atol=1e-4)
    path = tmp_path / "oxygen.xyz"
    path.write_text("2\nmultiplicity=3\nO 0 0 0\nO 0 0 1.2\n")
    assert Molecule.from_xyz(path).multiplicity == 3
    with pytest.raises(pi.InvalidMolecule, match="contradicts multiplicity=1"):
        Molecule.from_xyz(path, multiplicity=1)
    path.write_text("2\nmultiplicity=3 magmom=4.0\nO 0 0 0\nO 0 0 1.2\n")
    with pytest.raises(pi.InvalidMolecule, match=r"multiplicity 3 .* add up to 4 contradict"):
        Molecule.from_xyz(path)


@pytest.mark.long
def test_a_radical_finds_its_minimum():
    start = Molecule([8, 1], [[0, 0, 0], [0, 0, 2.1]], multiplicity=2)
    best = pi.optimize(start, grid_level=1)
    assert best.converged
    assert best.molecule.multiplicity == 2
    field = oracle(best.molecule, grid_level=1)
    assert abs(best.energy - field.e_tot) < 1e-5
    assert np.abs(field.nuc_grad_method().set(grid_response=True).kernel()).max() < 1e-3


@pytest.mark.long
@pytest.mark.parametrize("numbers", [[8, 8], [7, 1], [5, 5]])
def test_diradicals_end_no_higher_than_pyscf_in_pbe(numbers):
    """Closed shells of these have no state whose lowest orbitals are occupied."""
    far = {(8, 8): 2.29, (7, 1): 1.97, (5, 5): 3.02}[tuple(numbers)]
    mol = Molecule(numbers, [[0, 0, 0], [0, 0, far]])
    result = pi.uks(mol, xc="pbe", **LEVEL)
    assert result.converged
    assert result.s_squared > 0.9
    assert result.energy < oracle(mol, xc="pbe").e_tot + 4e-4
