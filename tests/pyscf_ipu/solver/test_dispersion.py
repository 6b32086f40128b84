"""Dispersion in results: beside PySCF and dftd3, in lists and tables, and not in programs."""

import json

import ase.units
import numpy as np
import pytest
from oracle import HYDROGEN, ground_state, small

import pyscf_ipu as pi
from pyscf_ipu import Settings, Solver, rks
from pyscf_ipu.api.calculator import Calculator
from pyscf_ipu.interop import RKS
from pyscf_ipu.solver import shared
from pyscf_ipu.solver import solver as solver_module
from pyscf_ipu.xc.dispersion.correction import correction
from pyscf_ipu.xc.suffixes.names import Dispersion

pytestmark = pytest.mark.slow

dftd3 = pytest.importorskip("dftd3.interface")
pytest.importorskip("dftd4")

LEVEL = {"xc": "hf", "grid_level": 0}
CYANIDE = small("hydrogen cyanide")


def d3bj(mol, method):
    """dftd3 called directly, with the parameters that it has by name."""
    model = dftd3.DispersionModel(mol.numbers, mol.positions)
    return model.get_dispersion(dftd3.RationalDampingParam(method=method), grad=True)


def test_energy_and_forces_are_those_of_pyscf_and_dftd3():
    mol = small("methanol")
    found = rks(mol, xc="b3lyp-d3bj", grid_level=0, precision="float64", forces=True)
    field, added = ground_state(mol, xc="b3lyp"), d3bj(mol, "b3lyp")
    gradient = field.nuc_grad_method().set(grid_response=True).kernel() + added["gradient"]
    assert found.energy == pytest.approx(field.e_tot + float(added["energy"]), abs=1e-7)
    assert found.dispersion == pytest.approx(float(added["energy"]), rel=1e-12)
    assert found.dispersion < -1e-3
    np.testing.assert_allclose(found.forces, -gradient, atol=1e-6)
    assert sum(found.energy_terms.values()) + found.dispersion == pytest.approx(found.energy)


@pytest.fixture(scope="module")
def plain():
    return rks([CYANIDE, small("methanol")], **LEVEL, forces=True)


def test_a_list_has_it_for_every_molecule(plain):
    found = rks([CYANIDE, small("methanol")], **LEVEL | {"xc": "hf-d3bj"}, forces=True)
    expected = [d3bj(mol, "hf") for mol in (CYANIDE, small("methanol"))]
    assert plain.dispersion is None
    np.testing.assert_allclose(found.dispersion, [float(e["energy"]) for e in expected], rtol=1e-9)
    np.testing.assert_allclose(found.energy, plain.energy + found.dispersion, rtol=0, atol=1e-12)
    for with_it, without, one in zip(found.forces, plain.forces, expected, strict=True):
        np.testing.assert_allclose(with_it, without - one["gradient"], rtol=0, atol=1e-12)
    assert list(found.to_pandas()["dispersion"]) == list(found.dispersion)
    assert found.to_pandas().attrs["units"]["dispersion"] == "Hartree"
    assert "dispersion" not in plain.to_pandas()


def test_one_molecule_shows_it():
    found = rks(CYANIDE, **LEVEL | {"xc": "hf-d4"})
    assert f"dispersion {found.dispersion:.6f} Hartree" in " ".join(repr(found).split())
    values = json.loads(found.to_json())
    assert values["dispersion"] == found.dispersion
    assert values["units"]["dispersion"] == "Hartree"
    assert values["settings"]["xc"] == "hf-d4"
    assert "dispersion" not in rks(CYANIDE, **LEVEL).to_dict()


def test_what_cannot_be_computed_has_none():
    radical = pi.Molecule([1, 8], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.8]])
    found = rks([CYANIDE, radical], **LEVEL | {"xc": "hf-d3"})
    assert found.dispersion[0] < 0
    assert np.isnan(found.dispersion[1])
    assert rks([], **LEVEL | {"xc": "hf-d3"}).dispersion is None


def test_levels_that_differ_in_dispersion_share_programs(monkeypatch):
    shared.clear()
    made = []
    real = solver_module.kept.compiled

    def compiled(function, key, *rest, **named):
        made.append(key)
        return real(function, key, *rest, **named)

    monkeypatch.setattr(solver_module.kept, "compiled", compiled)
    energies = [rks(HYDROGEN, **LEVEL | {"xc": xc}).energy for xc in ("hf-d4", "hf", "hf-d3bj")]
    assert len(made) == 1
    assert "xc='hf'" in made[0]
    assert len(set(energies)) == 3
    assert [rks(HYDROGEN, **LEVEL | {"xc": xc}).energy for xc in ("hf-d4", "hf")] == energies[:2]
    alone = Solver(Settings(**LEVEL | {"xc": "hf-d4"}))
    alone.compile(alone.shape(HYDROGEN))
    assert made[1] == made[0]


def test_a_solver_of_another_level_shares_nothing():
    solver = Solver(Settings(**LEVEL))
    other = solver.with_dispersion(Settings(**LEVEL | {"xc": "hf-d4"}))
    assert other.settings.dispersion == Dispersion("d4", "hf")
    with pytest.raises(ValueError, match="has other programs than"):
        solver.with_dispersion(Settings(**LEVEL | {"xc": "hf-d4", "basis": "6-31g"}))


def test_the_calculator_and_the_optimiser_have_it():
    atoms = CYANIDE.to_ase()
    atoms.calc = Calculator(**LEVEL | {"xc": "hf-d3bj"})
    found = rks(CYANIDE, **LEVEL | {"xc": "hf-d3bj"}, forces=True)
    energy, forces = atoms.get_potential_energy(), atoms.get_forces()
    assert energy / ase.units.Hartree == pytest.approx(found.energy, rel=1e-8)
    force_unit = ase.units.Hartree / ase.units.Bohr
    np.testing.assert_allclose(forces / force_unit, found.forces, rtol=1e-7, atol=1e-9)
    best = pi.optimize(CYANIDE, **LEVEL | {"xc": "hf-d3bj"}, max_steps=0)
    assert best.energy == found.energy


def test_a_level_that_nobody_has_fitted_is_refused():
    with pytest.raises(ValueError, match=r"there are no D4 parameters of 'lda', only of b3lyp"):
        rks(HYDROGEN, xc="lda-d4")
    with pytest.raises(TypeError, match=r"belongs to the functional's name: xc='b3lyp-d3bj'"):
        rks(HYDROGEN, dispersion="d3")


def test_the_drop_in_for_pyscf_refuses_it():
    mole = ground_state(HYDROGEN, xc="hf").mol
    with pytest.raises(ValueError, match=r"'d3bj', which this class leaves to others.*rks"):
        RKS(mole, xc="b3lyp-d3bj").kernel()


def test_free_choice_of_a_single_correction_by_hand():
    """As the documentation shows it."""
    kind = Settings(xc="pbe0-d4").dispersion
    by_hand = correction(kind, CYANIDE.numbers, CYANIDE.positions)
    assert by_hand.energy < 0
    np.testing.assert_allclose(by_hand.forces.sum(0), 0, atol=1e-12)
