"""Settings: checked once, hashable, and with a policy for every precision."""

import json

import numpy as np
import pytest
from oracle import WATER, mole_of
from pyscf import dft, gto

from pyscf_ipu import Settings, Solver, rks
from pyscf_ipu.errors import UnknownBasis


def test_defaults_are_usable_and_hashable():
    settings = Settings()
    assert settings.check() is settings
    assert len({settings, Settings(), Settings(xc="hf")}) == 2
    assert settings.numerics.scf_dtype == np.float32


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"xc": "b3lyp6"}, "unknown functional 'b3lyp6': use one of hf"),
        ({"precision": "double"}, "unknown precision 'double': use one of float32"),
        ({"grid_level": -1}, "grid_level -1"),
        ({"grid_level": True}, "grid_level True"),
        ({"grid_level": 11}, "grid_level 11"),
        ({"max_cycles": 0}, "max_cycles 0 is not an integer of at least 1"),
    ],
)
def test_what_is_not_offered_names_what_is(changes, words):
    with pytest.raises(ValueError, match=words):
        Settings(**changes).check()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("accuracy", "accuracy is 'few': give one of energy"),
        ("first_cycles", "is 'few': give coarse"),
    ],
)
def test_so_do_those_of_few_values(name, words):
    settings = Settings()
    object.__setattr__(settings, name, "few")  # past the type check of the tests
    with pytest.raises(ValueError, match=words):
        settings.check()


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


def test_cycles_are_rough_where_there_is_a_grid_and_an_end():
    assert Settings().has_rough_cycles
    for level in ({"xc": "hf"}, {"fixed_cycles": 20}, {"first_cycles": "full"}):
        assert not Settings(**level).check().has_rough_cycles


def test_the_default_grid_is_pyscf_s():
    assert Settings().grid_level == dft.gen_grid.Grids(gto.M(atom="He")).level


def test_numpy_s_integers_are_integers():
    settings = Settings()
    object.__setattr__(settings, "grid_level", np.int64(3))  # past the type check of the tests
    settings.__post_init__()
    assert repr(settings.check()) == repr(Settings())


def test_cartesian_functions():
    assert [Settings(cart=cart).check().cart for cart in (True, False, "6d7f")] == [
        True,
        False,
        "6d7f",
    ]
    settings = Settings()
    object.__setattr__(settings, "cart", np.True_)  # past the type check of the tests
    settings.__post_init__()
    assert settings.check().cart is True


@pytest.mark.parametrize("cart", ["5d10f", 1, None])
def test_other_functions_are_refused(cart):
    settings = Settings()
    object.__setattr__(settings, "cart", cart)  # past the type check of the tests
    with pytest.raises(ValueError, match=f"cart is {cart!r}: give True"):
        settings.check()


def test_unknown_basis():
    with pytest.raises(UnknownBasis, match="nonsense"):
        Settings(basis="nonsense").check()


def test_radial_points_and_points_of_a_sphere():
    level = Settings(grid_level=(20, 50), prune=False).check()
    assert (level.grid_level, level.grid_in_words) == ((20, 50), "grid 20x50 unpruned")
    assert hash(level) == hash(Settings(grid_level=(20, 50), prune=False))
    assert level.to_dict()["grid_level"] == [20, 50]
    assert Settings.from_dict(json.loads(json.dumps(level.to_dict()))) == level
    assert "prune" not in Settings(grid_level=(20, 50)).to_dict()  # as in earlier fingerprints


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


def test_other_forms_are_refused():
    settings = Settings()
    object.__setattr__(settings, "jk", "df")  # past the type check of the tests
    with pytest.raises(ValueError, match="jk is 'df': give one of exact, ri, auto"):
        settings.check()
