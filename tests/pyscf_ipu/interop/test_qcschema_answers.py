"""QCSchema's orbitals: orthonormal in the functions that the same answer describes."""

import numpy as np
import pytest
from pyscf import gto

from pyscf_ipu.interop.qcschema import compute

GEOMETRY = [0, 0, 0, 0, 0, 1.83]


def answer(basis, keywords, multiplicity=2):
    return compute(
        {
            "molecule": {
                "symbols": ["O", "H"],
                "geometry": GEOMETRY,
                "molecular_multiplicity": multiplicity,
                "molecular_charge": 0 if multiplicity == 2 else -1,
            },
            "driver": "energy",
            "model": {"method": "hf", "basis": basis},
            "keywords": {"precision": "float64"} | keywords,
            "protocols": {"wavefunction": "all"},
        }
    )


def functions_of(basis):
    """PySCF's molecule with a BasisSet's shells, and its AOs from -l to l."""
    sets = {
        symbol: [
            [
                shell["angular_momentum"][0],
                *zip(shell["exponents"], *shell["coefficients"], strict=True),
            ]
            for shell in centre["electron_shells"]
        ]
        for symbol, centre in basis["center_data"].items()
    }
    xyz = np.reshape(GEOMETRY, (-1, 3)).tolist()
    atoms = list(zip(basis["atom_map"], xyz, strict=True))
    mole = gto.M(atom=atoms, unit="bohr", basis=sets, spin=1, verbose=0)
    first, order = 0, []
    for shell in range(mole.nbas):
        degree = mole.bas_angular(shell)
        inside = {0: [0], 1: [1, 2, 0]}.get(degree, range(2 * degree + 1))
        order += [first + m for m in inside]
        first += 2 * degree + 1
    return mole, order


@pytest.mark.parametrize(("basis", "multiplicity"), [("6-31g*", 2), ("def2-svp", 1)])
def test_orbitals_are_orthonormal_and_have_the_energy(basis, multiplicity):
    given = answer(basis, {}, multiplicity)
    wavefunction = given["wavefunction"]
    mole, order = functions_of(wavefunction["basis"])
    overlap, kinetic = (
        mole.intor(name)[np.ix_(order, order)] for name in ("int1e_ovlp", "int1e_kin")
    )
    spins = "ab" if multiplicity == 2 else "a"
    assert wavefunction["restricted"] == (multiplicity == 1)
    energy = 0.0
    core = kinetic + mole.intor("int1e_nuc")[np.ix_(order, order)]
    for spin in spins:
        orbitals = np.asarray(wavefunction[f"scf_orbitals_{spin}"]).reshape(len(order), -1)
        np.testing.assert_allclose(orbitals.T @ overlap @ orbitals, np.eye(len(order)), atol=1e-8)
        filled = np.asarray(wavefunction[f"scf_occupations_{spin}"])
        density = (orbitals * filled) @ orbitals.T
        theirs = np.reshape(wavefunction[f"scf_density_{spin}"], density.shape)
        np.testing.assert_allclose(density, theirs, atol=1e-6)
        energy += np.sum(density * core) * (2 if multiplicity == 1 else 1)
    assert energy == pytest.approx(given["properties"]["scf_one_electron_energy"], abs=1e-5)


def test_cartesian_functions_are_refused():
    assert "spherical" in answer("6-31g*", {"cart": True})["error"]["error_message"]
