"""Settings: checked once, hashable, and with a policy for every precision."""

import json
from dataclasses import replace

import numpy as np
import pytest
from oracle import WATER, mole_of
from pyscf import dft, gto

from pyscf_ipu import Settings, Solver, rks
from pyscf_ipu.base.errors import UnknownBasis, UsageError
from pyscf_ipu.xc.suffixes.names import OWN_BASIS


def test_defaults_are_usable_and_hashable():
    settings = Settings()
    assert settings.check() is settings
    assert len({settings, Settings(), Settings(xc="hf")}) == 2
    assert settings.numerics.scf_dtype == np.float32


def test_a_threshold_follows_what_is_to_be_right():
    """And is a setting of the run where it is not the default."""
    at = {name: Settings(accuracy=name).check() for name in ("energy", "orbitals", "properties")}
    energy, orbitals, properties = (s.numerics.commutator for s in at.values())
    assert energy > orbitals == properties == Settings().numerics.commutator
    assert at["energy"].to_dict()["accuracy"] == "energy"
    assert "accuracy" not in Settings().to_dict()
    assert Settings.from_dict(at["energy"].to_dict()) == at["energy"]


def test_forces_need_an_scf_that_ends_when_they_are_right():
    Settings().check_forces()
    for name in ("energy", "orbitals"):
        with pytest.raises(ValueError, match=f'accuracy="{name}" ends the SCF before forces'):
            Settings(accuracy=name).check_forces()


def test_cycles_are_coarse_where_there_is_a_grid_and_an_end():
    assert Settings().has_coarse_cycles
    for level in ({"xc": "hf"}, {"fixed_cycles": 20}, {"first_cycles": "full"}):
        assert not Settings(**level).check().has_coarse_cycles


def test_the_default_grid_is_pyscf_s():
    assert Settings().grid_level == dft.gen_grid.Grids(gto.M(atom="He")).level


def test_cartesian_functions():
    assert [Settings(cart=cart).cart for cart in (True, False, "6d7f")] == [True, False, "6d7f"]


def test_unknown_basis():
    with pytest.raises(UnknownBasis, match="nonsense"):
        Settings(basis="nonsense").check()


@pytest.mark.parametrize("name", OWN_BASIS)
def test_a_composite_method_has_its_own_basis(name):
    own = OWN_BASIS[name]
    level = Settings(xc=name.upper()).check()
    assert level.basis == own
    assert Settings(xc=name, basis=own.upper()) == replace(Settings(), xc=name) == level
    assert Settings.from_dict(json.loads(json.dumps(level.to_dict()))) == level
    assert level.without_dispersion() == level
    assert replace(level, xc="pbe").basis == own
    assert level.in_words.startswith(f"{name}/{own}, spherical, grid level 3, float32")
    for wrong in ({"basis": "sto-3g"}, {"cart": True}, {"basis": own, "cart": "6d7f"}):
        with pytest.raises(UsageError, match=f"this method has the basis set '{own}' with sph"):
            Settings(xc=name, **wrong)


def test_a_preset_with_a_composite_method_changes_its_basis():
    level = Settings.preset("qm9").changed(xc="r2SCAN-3c")
    assert (level.basis, level.cart) == ("def2-mtzvpp", False)
    with pytest.raises(UsageError, match="xc='r2scan-3c' with basis='6-31g': this method has"):
        Settings.preset("qm9").changed(xc="r2SCAN-3c", basis="6-31g")
    with pytest.raises(UsageError, match="xc='b97-3c' with basis='6-31g': this method has"):
        Settings.preset("b97-3c").changed(basis="6-31g")


def test_radial_points_and_points_of_a_sphere():
    level = Settings(grid_level=(20, 50), prune=False).check()
    assert (level.grid_level, level.grid_in_words) == ((20, 50), "grid 20x50 unpruned")
    assert hash(level) == hash(Settings(grid_level=(20, 50), prune=False))
    assert level.to_dict()["grid_level"] == [20, 50]
    assert Settings.from_dict(json.loads(json.dumps(level.to_dict()))) == level
    assert "prune" not in Settings(grid_level=(20, 50)).to_dict()  # as in earlier fingerprints


@pytest.mark.long
def test_such_a_grid_is_that_of_pyscf():
    level = Settings(
        basis="sto-3g", xc="lda", grid_level=(20, 50), precision="float64", prune=False
    )
    field = dft.RKS(mole_of(WATER, "sto-3g"), xc="lda,vwn")
    field.grids.atom_grid, field.grids.prune = (20, 50), None
    found = rks(WATER, solver=Solver(level))
    assert found.energy == pytest.approx(field.kernel(), abs=1e-7)
    assert "grid 20x50 unpruned" in str(found)


def test_forms_of_electron_repulsion():
    level = Settings(jk="auto").check()
    assert [level.form(n) for n in (128, 129)] == ["exact", "ri"]
    assert [Settings(jk=jk).form(500) for jk in ("exact", "ri")] == ["exact", "ri"]
    assert "jk" not in Settings().to_dict()  # as in earlier fingerprints
    assert level.to_dict()["jk"] == "auto"
    assert level.in_words.endswith("float32, density fitting above 128 AOs")
    assert Settings(jk="ri").in_words.endswith("float32, density fitting")
    assert Settings(jk="ri").numerics.wants64
    assert not Settings().numerics.wants64
    assert level.with_form("ri") == Settings(jk="ri")


def test_pyscf_fits_as_asked():
    mole = mole_of(WATER, "def2-svp")
    assert Settings(jk="ri", xc="pbe").pyscf_method(mole).with_df.auxbasis == "def2-universal-jfit"
    assert getattr(Settings(xc="pbe").pyscf_method(mole), "with_df", None) is None
