"""Results people keep: tables, records, JSON, Molden and cube files; read back by PySCF."""

import json

import numpy as np
import pandas as pd
import pytest
from oracle import WATER, mole_of
from pyscf.tools import cubegen, molden

from pyscf_ipu import Molecule, rks

RADICAL = Molecule([8, 1], [[0, 0, 0], [0, 0, 1.8]])
FLUORIDE = Molecule([9, 1], [[0, 0, 0], [0, 0, 1.7325]], name="hydrogen fluoride")


@pytest.fixture(scope="module")
def solver(solver_of):
    """float64 Hartree-Fock; the shape of one heavy atom."""
    return solver_of(xc="hf", precision="float64")


@pytest.fixture(scope="module")
def water(solver):
    return rks(WATER, solver=solver, orbitals=True)


@pytest.fixture(scope="module")
def several(solver):
    return rks([WATER, RADICAL, FLUORIDE], solver=solver, orbitals=True)


def test_a_result_prints_as_a_table_with_units(water):
    text = repr(water)
    lines = text.splitlines()
    assert lines[0].startswith("Molecule(H2O, 3 atoms), hf/sto-3g, grid level 0, float64: conv")
    assert f"{water.energy:.8f}  Hartree" in text
    assert "Debye" in text
    assert "mo_coeff [7, 7]" in lines[-1]
    assert max(map(len, lines)) <= 100


def test_a_list_prints_a_line_per_molecule(several):
    lines = repr(several).splitlines()
    assert len(lines) == 2 + 3
    assert "energy/Hartree" in lines[1]
    assert lines[2].split()[0] == "0"
    assert "invalid: " in lines[3]
    assert repr(rks([])).startswith("0 molecules")


def test_a_record_has_plain_values_and_their_units(water):
    record = water.to_dict()
    assert record["energy"] == water.energy
    assert type(record["energy"]) is float
    assert record["mo_energy"] == water.mo_energy.tolist()
    assert record["molecule"]["symbols"] == ["O", "H", "H"]
    assert record["settings"]["xc"] == "hf"
    assert record["units"]["forces"] == "Hartree/Bohr"
    assert "forces" not in record


def test_json_is_strict_and_is_written(several, tmp_path):
    text = several.to_json(tmp_path / "three.json")

    def refuse(constant):
        raise AssertionError(constant)

    read = json.loads((tmp_path / "three.json").read_text(), parse_constant=refuse)
    assert read == json.loads(text)
    assert [one["status"][:7] for one in read["molecules"]] == ["converg", "invalid", "converg"]
    assert read["molecules"][1]["energy"] is None
    assert read["molecules"][2]["energy"] == several.energy[2]


def test_pandas_has_a_row_per_molecule(several, water):
    frame = several.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    np.testing.assert_array_equal(frame["energy"], several.energy)
    np.testing.assert_array_equal(frame["dipole_z"], several.dipole[:, 2])
    np.testing.assert_array_equal(frame["energy_kinetic"], several.energy_terms["kinetic"])
    assert frame["name"].tolist() == ["", "", "hydrogen fluoride"]
    assert frame.attrs["units"]["dipole_x"] == "e Bohr"
    assert frame.attrs["units"]["energy_kinetic"] == "Hartree"
    assert len(water.to_pandas()) == 1


def test_molden_is_read_back_by_pyscf(water, several, tmp_path):
    path = tmp_path / "water.molden"
    water.to_molden(path)
    mole, energies, coefficients, occupations, _, _ = molden.load(str(path))
    overlap = mole.intor("int1e_ovlp")
    n = coefficients.shape[1]
    np.testing.assert_allclose(coefficients.T @ overlap @ coefficients, np.eye(n), atol=1e-5)
    np.testing.assert_allclose(energies, water.mo_energy, atol=1e-5)
    assert occupations.sum() == WATER.n_electrons
    density = (coefficients * occupations) @ coefficients.T
    dipole = np.einsum("xij,ji->x", mole.intor("int1e_r"), density)
    nuclear = mole.atom_charges() @ mole.atom_coords()
    np.testing.assert_allclose(nuclear - dipole, water.dipole, atol=1e-4)
    several.to_molden(path, index=2)
    assert molden.load(str(path))[0].atom_pure_symbol(0) == "F"


@pytest.mark.slow
def test_molden_of_d_shells(solver_of, tmp_path):
    """Molden has an order of its own for d functions, which the writer must know."""
    result = rks(
        FLUORIDE, solver=solver_of(basis="6-31g*", xc="hf", precision="float64"), orbitals=True
    )
    result.to_molden(tmp_path / "hf.molden")
    mole, energies, coefficients, *_ = molden.load(str(tmp_path / "hf.molden"))
    overlap = mole.intor("int1e_ovlp")
    identity = coefficients.T @ overlap @ coefficients
    np.testing.assert_allclose(identity, np.eye(len(energies)), atol=1e-4)


@pytest.mark.long
def test_files_of_cartesian_d_and_spherical_f_shells(solver_of, tmp_path):
    """They are written in terms of cartesian functions, which all programs read."""
    level = {"basis": "6-31g(2df,p)", "cart": "6d7f", "xc": "hf", "precision": "float64"}
    result = rks(FLUORIDE, solver=solver_of(**level), orbitals=True)
    result.to_molden(tmp_path / "hf.molden")
    mole, energies, coefficients, occupations, *_ = molden.load(str(tmp_path / "hf.molden"))
    overlap = mole.intor("int1e_ovlp")
    identity = coefficients.T @ overlap @ coefficients
    np.testing.assert_allclose(identity, np.eye(len(energies)), atol=1e-5)
    grid = {"nx": 12, "ny": 12, "nz": 12}
    density = (coefficients * occupations) @ coefficients.T
    expected = cubegen.density(mole, str(tmp_path / "theirs"), density, **grid)
    result.to_cube(tmp_path / "ours", points=12)
    found = cubegen.Cube(mole, **grid).read(str(tmp_path / "ours"))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_cubes_are_those_of_pyscf(water, tmp_path):
    path = tmp_path / "cube"
    mole = mole_of(WATER)
    grid = {"nx": 12, "ny": 12, "nz": 12}
    water.to_cube(path, points=12)
    expected = cubegen.density(mole, str(tmp_path / "theirs"), water.density_matrix, **grid)
    np.testing.assert_allclose(cubegen.Cube(mole, **grid).read(str(path)), expected, atol=1e-5)
    for what, orbital in (("homo", 4), ("lumo", 5), (0, 0)):
        water.to_cube(path, what, points=12)
        column = water.mo_coeff[:, orbital]
        expected = cubegen.orbital(mole, str(tmp_path / "theirs"), column, **grid)
        np.testing.assert_allclose(cubegen.Cube(mole, **grid).read(str(path)), expected, atol=1e-5)


def test_what_cannot_be_written(water, several, solver, tmp_path):
    bare = rks(WATER, solver=solver)
    with pytest.raises(ValueError, match="orbitals=True"):
        bare.to_molden(tmp_path / "a")
    with pytest.raises(
        ValueError, match="no orbital 'sigma': give 'density', 'spin', 'homo', 'lumo'"
    ):
        water.to_cube(tmp_path / "a", "sigma")
    with pytest.raises(ValueError, match="from 0 to 6"):
        water.to_cube(tmp_path / "a", 7)
    with pytest.raises(ValueError, match="at least 2 points"):
        water.to_cube(tmp_path / "a", points=1)
    with pytest.raises(ValueError, match="which of the 3 molecules"):
        several.to_molden(tmp_path / "a")
    with pytest.raises(ValueError, match="was not computed: invalid"):
        several.to_molden(tmp_path / "a", index=1)
    with pytest.raises(ValueError, match="there is no folder"):
        water.to_molden(tmp_path / "no" / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("write", ["to_json", "to_molden", "to_cube"])
def test_a_full_disk_leaves_the_old_file(water, write, tmp_path, monkeypatch):
    def fsync(descriptor):
        raise OSError(28, "No space left on device")

    path = tmp_path / "old"
    path.write_text("old")
    monkeypatch.setattr("os.fsync", fsync)
    with pytest.raises(OSError, match="No space left"):
        getattr(water, write)(path, **({"points": 4} if write == "to_cube" else {}))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
