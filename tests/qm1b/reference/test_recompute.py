"""The recomputation: PySCF's numbers at the manifest's level, in this process and in others."""

import math

import fake_runs
import numpy as np
import pytest
from pyscf import dft, gto, scf

from pyscf_ipu.settings import Settings
from qm1b.errors import UserError
from qm1b.folder.manifest.manifest import Manifest
from qm1b.reference.functional_ids import check_functional
from qm1b.reference.recompute import recompute, recompute_many
from qm1b.settings import PRESETS


def conformer(text, charge=0):
    """Atoms in Bohr: "O 0 0 0.22; H ..."."""
    mole = gto.M(atom=text, unit="Bohr", charge=charge, basis="sto-3g", verbose=0)
    numbers = mole.atom_charges().astype(np.uint8)
    return fake_runs.conformer(1, numbers, mole.atom_coords(), smiles="", charge=charge)


WATER = conformer("O 0 0 0.22; H 0 1.43 -0.89; H 0 -1.43 -0.89")
HYDRONIUM = conformer("O 0 0 0.1; H 1.8 0 0; H -0.9 1.6 0; H -0.9 -1.6 0", charge=1)


def test_it_is_the_ground_state_at_the_level_asked_for():
    level = Settings(basis="6-31g*", xc="b3lyp", grid_level=1, precision="float32", cart=True)
    reference = recompute(HYDRONIUM, level)
    atoms = list(zip(HYDRONIUM.numbers.tolist(), HYDRONIUM.positions, strict=True))
    mole = gto.M(atom=atoms, unit="B", basis="6-31g*", charge=1, cart=True, verbose=0)
    field = dft.RKS(mole, xc="b3lyp").set(conv_tol=1e-12)
    field.grids.level = 1
    field.kernel()
    n = mole.nelectron // 2
    assert reference.converged
    assert reference.energy == pytest.approx(field.e_tot, abs=1e-9)
    assert reference.homo == pytest.approx(field.mo_energy[n - 1], abs=1e-6)
    assert reference.lumo == pytest.approx(field.mo_energy[n], abs=1e-6)
    density = field.make_rdm1()
    electronic = -np.einsum("xij,ji->x", mole.intor("int1e_r"), density)
    nuclear = np.einsum("a,ax->x", mole.atom_charges(), mole.atom_coords())
    np.testing.assert_allclose(reference.dipole, electronic + nuclear, atol=1e-6)


@pytest.mark.slow
def test_cartesian_d_with_spherical_f_functions():
    """QM9's water: energy, and the printed digits of its orbitals, from Gaussian 09."""
    water = conformer(
        "O -0.06493193 1.84728206 0.01436493; H 0.12239093 0.03887582 0.00290004; "
        "H 1.64744504 2.45814139 0.00130983"
    )
    level = Settings(
        basis="6-31g(2df,p)", xc="b3lyp", grid_level=3, precision="float64", cart="6d7f"
    )
    exact = recompute(water, level, thorough=True)
    assert exact.converged
    assert exact.energy == pytest.approx(-76.426077, abs=5e-6)
    assert exact.homo == pytest.approx(-0.2928, abs=1e-4)
    assert exact.lumo == pytest.approx(0.0687, abs=1e-4)
    assert np.linalg.norm(exact.dipole) * 2.541746 == pytest.approx(1.8511, abs=2e-3)
    np.testing.assert_allclose(exact.mulliken_charges, [-0.589706, 0.294853, 0.294853], atol=2e-4)


def test_no_empty_orbital_no_lumo():
    reference = recompute(conformer("He 0 0 0"), PRESETS["qm1b"])
    assert math.isnan(reference.lumo)
    assert reference.homo < 0
    for alone in (conformer("He 0 0 0"), conformer("F 0 0 0", charge=-1)):
        thorough = recompute(alone, PRESETS["qm1b"], thorough=True)
        assert thorough.converged
        assert thorough.energy == pytest.approx(recompute(alone, PRESETS["qm1b"]).energy, abs=1e-12)


def test_what_pyscf_cannot_do_is_an_answer_too():
    level = Settings(basis="no-such-basis", xc="hf", grid_level=0, precision="float32")
    ((_, reference),) = recompute_many([WATER], level, workers=1)
    assert not reference.converged
    assert math.isnan(reference.energy)
    assert "no-such-basis" in reference.problem.lower()


def test_a_thorough_one_leaves_an_unstable_solution():
    stretched = conformer("N 0 0 0; N 0 0 3.78")
    level = Settings(basis="sto-3g", xc="hf", grid_level=0, precision="float32")
    first, better = (recompute(stretched, level, thorough) for thorough in (False, True))
    assert better.energy < first.energy - 0.1
    assert better.converged
    field = scf.RHF(gto.M(atom="N 0 0 0; N 0 0 3.78", unit="B", basis="sto-3g", verbose=0))
    assert first.energy == pytest.approx(field.kernel(), abs=1e-8)
    again = recompute(WATER, level, thorough=True).energy
    assert again == pytest.approx(recompute(WATER, level).energy, abs=1e-9)


def test_processes_give_the_same_bits():
    conformers = [WATER, HYDRONIUM, WATER]
    rows = dict(recompute_many(conformers, PRESETS["qm1b"], workers=2))
    assert sorted(rows) == [0, 1, 2]
    assert rows[0].energy == rows[2].energy
    assert rows[1].energy == pytest.approx(recompute(HYDRONIUM, PRESETS["qm1b"]).energy, abs=1e-9)
    assert dict(recompute_many([], PRESETS["qm1b"])) == {}


def test_the_level_of_a_manifest():
    level = {"basis": "6-31g", "xc": "pbe0", "grid_level": 2, "precision": "mixed"}
    others = {"conformers": 1, "seed": 0, "max_aos": 9, "limit": 7}
    assert Manifest.from_dict({"settings": level | others}).level == Settings(**level)


def test_functionals_are_compared_by_libxc_id():
    from pyscf_ipu.xc.registry import functional
    from pyscf_ipu.xc.suffixes.names import FUNCTIONALS

    for name in FUNCTIONALS:
        check_functional(name, functional(name).definition)
    with pytest.raises(UserError, match="verify it with a release"):
        check_functional("b3lyp", functional("b3lyp5").definition)
    with pytest.raises(UserError, match="verify it with a release"):
        check_functional("b3lyp5", functional("b3lyp").definition)
    for wrong in (
        functional("b3lyp5").definition + " + GGA_X_PBE(101)",
        functional("b3lyp5").definition.replace("0.81 GGA_C_LYP", "0.80 GGA_C_LYP"),
        functional("b3lyp5").definition.replace("0.20 HF", "0.25 HF"),
        functional("b3lyp5").definition.replace("475", "402"),
    ):
        with pytest.raises(UserError, match="verify it with a release"):
            check_functional("b3lyp5", wrong)
    with pytest.raises(UserError, match="verify it with a release"):
        check_functional("hf", "LDA_X(1)")
    with pytest.raises(UserError, match="not known here"):
        check_functional("m06", "libxc 449")
