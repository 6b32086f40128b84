"""Molecules: what the constructor and `check` refuse, and where molecules come from."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from pyscf_ipu import rks
from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.molecule.molecule import Molecule

WATER = [[0.0, 0.0, 0.2], [0.0, 1.4, -0.9], [0.0, -1.4, -0.9]]


def test_lists_become_read_only_arrays():
    water = Molecule([8, 1, 1], WATER)
    assert water.numbers.dtype == np.int64
    assert water.positions.dtype == np.float64
    assert water.n_electrons == 10
    assert Molecule([8, 1], WATER[:2], charge=-1).n_electrons == 10
    with pytest.raises(ValueError, match="read-only"):
        water.positions[0] = 0.0
    again = pickle.loads(pickle.dumps(water))
    np.testing.assert_array_equal(again.positions, water.positions)


@pytest.mark.parametrize(
    ("numbers", "positions"),
    [
        ([8, 1], WATER),
        ([[8, 1, 1]], WATER),
        ([8.5, 1, 1], WATER),
        ([float("inf"), 1, 1], WATER),
        (["O", "H", "H"], WATER),
        ([8, 1, 1], np.zeros((3, 2))),
        ([8, 1, 1], "here"),
    ],
)
def test_wrong_shapes_are_refused_at_once(numbers, positions):
    with pytest.raises(ValueError, match="must be"):
        Molecule(numbers, positions)


@pytest.mark.parametrize(
    ("numbers", "positions", "charge", "words"),
    [
        ([], [], 0, "no atoms"),
        ([88], [[0, 0, 0]], 0, r"Ra \(88\) at atom 0.*H to Rn"),
        ([0, 1, 1], [[0, 0, 0], [0, 0, 2], [0, 0, 4]], 0, "H2X has element number 0"),
        ([1, 999, 1], np.diag([0, 2, 4]), 0, r"H2\(Z=999\) has element number 999"),
        ([2], [[0, np.nan, 0]], 0, r"\[0.0, nan, 0.0\] Bohr at .* be a finite number;"),
        (
            [1, 1],
            [[0, 0, 0], [0, 0, 0.1]],
            0,
            r"0 \(H\) and 1 \(H\) only 0.1 Bohr apart \(0.0529 Angstrom\): at least 0.2 Bohr "
            r"\(0.106 Angstrom\) is allowed in float64; .* its unit",
        ),
        ([8, 1], [[0, 0, 0], [0, 0, 2]], 0, r"odd number of electrons \(9\).*charge="),
        ([1], [[0, 0, 0]], 1, "no electrons"),
    ],
)
def test_check_says_what_is_wrong(numbers, positions, charge, words):
    molecule = Molecule(numbers, positions, charge)
    with pytest.raises(InvalidMolecule, match=words):
        molecule.check()


@pytest.mark.slow
def test_float32_needs_atoms_further_apart():
    close = Molecule([17, 17], [[0, 0, 0], [0, 0, 0.6]])
    close.check("mixed")
    with pytest.raises(InvalidMolecule, match=r"at least 0.7 Bohr .* is allowed in float32"):
        close.check("float32")
    found = rks([close, Molecule([1, 1], [[0, 0, 0], [0, 0, 1.4]])])
    assert [status.split(":")[0] for status in found.status] == ["invalid", "converged"]


def test_check_accepts_atoms_ions_and_noble_gases():
    Molecule([2], [[0, 0, 0]]).check()
    Molecule([17], [[0, 0, 0]], charge=-1).check()
    Molecule([8, 1, 1], WATER).check()


def test_from_smiles_is_seeded_and_puts_hydrogens_last():
    ethanol = Molecule.from_smiles("CCO", seed=3)
    assert ethanol.symbols == ["C", "C", "O", *["H"] * 6]
    bond = np.linalg.norm(ethanol.positions[0] - ethanol.positions[1]) * BOHR_TO_ANGSTROM
    assert 1.4 < bond < 1.6
    np.testing.assert_array_equal(ethanol.positions, Molecule.from_smiles("CCO", 3).positions)
    assert np.any(ethanol.positions != Molecule.from_smiles("CCO", 4).positions)
    assert Molecule.from_smiles("C[NH3+]").charge == 1


@pytest.mark.parametrize(
    ("smiles", "words"),
    [
        ("C(C", "cannot be read"),
        ("", "cannot be read"),
        ("C[Fe]", "Fe"),
        ("[Na+].[Cl-]", "2 fragments, which RDKit does not place"),
        ("C" * 700, "2102 atoms: 2000 at most"),
        ("CC(=O)[O-].[Na+]", "2 fragments"),
        ("C[NH3+].[Cl-]", "2 fragments"),
    ],
)
def test_from_smiles_refuses(smiles, words):
    with pytest.raises(InvalidMolecule, match=words):
        Molecule.from_smiles(smiles)


def test_from_xyz_reads_plain_and_extended_files(tmp_path):
    plain = tmp_path / "water.xyz"
    plain.write_text("3\n\nO 0 0 0.1\nh 0 0.75 -0.47\nH1 0 -0.75 -0.47\n")
    extended = tmp_path / "extended.xyz"
    extended.write_text(
        '3\nProperties=id:I:1:pos:R:3:species:S:1 pbc="F F F"\n'
        "1 0 0 0.1 O\n2 0 0.75 -0.47 H\n3 0 -0.75 -0.47 H\n"
    )
    for path in (plain, extended):
        water = Molecule.from_xyz(path)
        assert water.numbers.tolist() == [8, 1, 1]
        assert water.positions[1, 1] == pytest.approx(0.75 / 0.529177210903)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ("two\n", "number of atoms"),
        ("2\n\nO 0 0 0\n", "ends after 1 of 2"),
        ("1\n\nO 0 0\n", "line 3"),
        ("1\n\nQq 0 0 0\n", "line 3"),
        ('1\npbc="T T T"\nHe 0 0 0\n', "periodic"),
    ],
)
def test_from_xyz_names_the_line(tmp_path, text, words):
    path = tmp_path / "bad.xyz"
    path.write_text(text)
    with pytest.raises(InvalidMolecule, match=words):
        Molecule.from_xyz(path)


def test_from_xyz_without_a_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Molecule.from_xyz(tmp_path / "none.xyz")


def test_from_pyscf():
    from pyscf import gto

    mole = gto.M(atom=[("O", WATER[0]), ("H", WATER[1])], unit="Bohr", charge=-1)
    molecule = Molecule.from_pyscf(mole)
    assert molecule.numbers.tolist() == [8, 1]
    assert molecule.charge == -1
    np.testing.assert_allclose(molecule.positions, WATER[:2], atol=1e-12)
    assert Molecule.from_pyscf(gto.M(atom="O 0 0 0", spin=2)).multiplicity == 3


def test_from_ase():
    ase = pytest.importorskip("ase")
    atoms = ase.Atoms("OH2", positions=np.array(WATER) * 0.529177210903)
    molecule = Molecule.from_ase(atoms)
    assert molecule.numbers.tolist() == [8, 1, 1]
    np.testing.assert_allclose(molecule.positions, WATER, atol=1e-12)
    atoms.pbc = True
    with pytest.raises(InvalidMolecule, match="periodic"):
        Molecule.from_ase(atoms)


def test_from_ase_takes_moments_and_no_contradiction():
    ase = pytest.importorskip("ase")
    build = pytest.importorskip("ase.build")
    oxygen = build.molecule("O2")
    assert Molecule.from_ase(oxygen).multiplicity == 3
    oxygen.set_initial_magnetic_moments([1.0, 0.5])
    with pytest.raises(InvalidMolecule, match=r"add up to 1.5: .*moments\(None\)"):
        Molecule.from_ase(oxygen)
    atoms = ase.Atoms("OH", positions=np.array(WATER[:2]) * 0.529177210903)
    assert Molecule.from_ase(atoms, charge=-1).charge == -1, "ASE's charges are zero by default"
    atoms.set_initial_charges([-1.3, 0.301])  # rounded
    assert Molecule.from_ase(atoms, charge=-1).charge == -1
    for charge in (0, 1):
        with pytest.raises(InvalidMolecule, match=rf"add up to -0.999.* charge={charge}: give"):
            Molecule.from_ase(atoms, charge)
    atoms.set_initial_charges([0.5, -0.5])
    assert Molecule.from_ase(atoms).charge == 0
    with pytest.raises(InvalidMolecule, match="contradicts charge=-1"):
        Molecule.from_ase(atoms, -1)


def test_from_ase_takes_what_its_info_states():
    ion = Molecule([8, 1], WATER[:2], -1)
    atoms = ion.to_ase()
    assert Molecule.from_ase(atoms).charge == Molecule.from_ase(atoms, charge=-1).charge == -1
    with pytest.raises(InvalidMolecule, match=r"state the charge -1 in `info`.*charge=0"):
        Molecule.from_ase(atoms, charge=0)
    atoms.info["multiplicity"] = 3
    assert Molecule.from_ase(atoms).multiplicity == 3
    atoms.set_initial_magnetic_moments([1.0, 0.0])
    with pytest.raises(InvalidMolecule, match=r"state the multiplicity 3 .*1 unpaired"):
        Molecule.from_ase(atoms)


WRONG_TYPES = """
import ase
import pyscf_ipu as pi
for call in (
    lambda: pi.Molecule([2], [[0, 0, 0]], charge=None),
    lambda: pi.Molecule([2], [[0, 0, 0]], charge=float("nan")),
    lambda: pi.Molecule.from_smiles(None),
    lambda: pi.Molecule.from_pyscf("water"),
    lambda: pi.Molecule.from_ase("water"),
    lambda: pi.rks(None),
    lambda: pi.rks(["CCO"]),
    lambda: pi.optimize("CCO"),
    lambda: pi.optimize([1]),
    lambda: pi.optimize(None),
    lambda: pi.optimize(ase.Atoms("H2", [[0, 0, 0], [0, 0, 0.74]])),
    lambda: pi.Calculator(solver="x"),
    lambda: pi.Calculator(charge=0.5),
):
    try:
        call()
    except (TypeError, ValueError) as error:
        print(error)
"""


def test_a_wrong_type_gets_one_sentence():
    """In a process of its own: here the type checker would answer first."""
    found = subprocess.run(
        [sys.executable, "-c", WRONG_TYPES], capture_output=True, text=True, timeout=120
    )
    lines = found.stdout.splitlines()
    assert found.returncode == 0, found.stderr
    assert len(lines) == 13
    assert all("must be" in x or "is needed" in x or "not a" in x or "give" in x for x in lines)
