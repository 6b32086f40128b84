"""What people ask for and is not there: the message names what is."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest
from ase.build import molecule as ase_molecule
from oracle import HYDROGEN, mole_of

import pyscf_ipu as pi
from pyscf_ipu.api.advice import KEYWORDS, NAMES, explains_keywords
from pyscf_ipu.api.energies import solver_for
from pyscf_ipu.molecule.checks import as_molecule
from pyscf_ipu.settings import LevelKeywords


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hessian", "has no attribute 'hessian': pi.frequencies"),
        ("uhf", r"has no attribute 'uhf': pi\.uks computes open shells"),
        ("grad", "pi.forces"),
        ("nonsense", "has no attribute 'nonsense'$"),
    ],
)
def test_names(name, words):
    with pytest.raises(AttributeError, match=words):
        getattr(pi, name)


def test_nothing_that_exists_is_called_absent():
    assert not NAMES.keys() & set(dir(pi))
    assert not KEYWORDS.keys() & set(inspect.signature(pi.rks).parameters)


LEVELLED = [pi.rks, pi.uks, pi.forces, pi.optimize, pi.frequencies]
"""Functions that take a molecule and a level."""


@pytest.mark.parametrize("function", LEVELLED)
@pytest.mark.parametrize(
    ("keyword", "words"),
    [
        ("charge", r"'charge': the charge belongs to the molecule: Molecule\(..., charge=1\)"),
        ("spin", "'spin': pi.uks computes open shells"),
        ("solvent", "'solvent': there is no solvent model"),
        ("precison", "'precison': did you mean 'precision'?"),
        ("method", "'method': give the functional as xc="),
        ("fmax", "'fmax': pi.optimize takes max_force_hartree_per_bohr="),
        ("qqqq", "'qqqq': use one of molecules?, basis, xc"),
    ],
)
def test_keywords(function, keyword, words):
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) got an unexpected.*{words}"):
        function(HYDROGEN, **{keyword: 1})


@pytest.mark.parametrize("function", LEVELLED)
def test_a_level_is_given_by_name(function):
    with pytest.raises(
        TypeError, match=rf'^{function.__name__}\(\) takes .* by name: give basis="6-31g\*"$'
    ):
        function(HYDROGEN, "6-31g*")
    with pytest.raises(TypeError, match=r"name: give solver=pyscf_ipu.Solver\(settings\)$"):
        function(HYDROGEN, pi.Settings())


@pytest.mark.parametrize("made", [pi.Settings, pi.Calculator])
def test_so_it_is_where_a_class_takes_one(made):
    with pytest.raises(TypeError, match=f"^{made.__name__}.* by name: give basis='?\"?6-31g"):
        made("6-31g", "pbe")
    with pytest.raises(TypeError, match=rf"^{made.__name__}\(\) got .*'method': give .* as xc="):
        made(method="pbe")


@pytest.mark.parametrize("function", [*LEVELLED, pi.Calculator, solver_for])
def test_help_shows_every_keyword_of_the_level(function):
    shown = inspect.signature(function).parameters
    level = get_type_hints(LevelKeywords)
    assert level.keys() < shown.keys()
    assert all(shown[name].kind is shown[name].KEYWORD_ONLY for name in level)


def test_the_text_of_rks_describes_every_argument():
    text, _, _ = inspect.getdoc(pi.rks).partition("Raises:")
    described = re.findall(r"^ {4}(\w+): ", text, re.MULTILINE)
    assert set(inspect.signature(pi.rks).parameters) == set(described)


def test_the_decorator_changes_nothing_else():
    @explains_keywords
    def double(x, /, *, times=2):
        """Its text."""
        return times * x

    assert (double(3), double(3, times=3), double.__doc__) == (6, 9, "Its text.")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("CCO", "pi.Molecule.from_smiles('CCO')"),
        ("a/water.xyz", "from_xyz('a/water.xyz')"),
        ("water.SDF", "from_sdf('water.SDF')"),
        (Path("water.xyz"), "from_xyz"),
        (ase_molecule("H2O"), "from_ase"),
        (mole_of(HYDROGEN), "from_pyscf"),
        (3.5, "Molecule(numbers, positions_bohr)"),
    ],
)
def test_something_else_than_a_molecule(value, words):
    assert words in as_molecule(value)


PROBE = """
import pyscf_ipu as pi
from pyscf_ipu.ipu import BOW, simulate
water = pi.Molecule.from_smiles("O")
for call in (
    lambda: pi.rks("CCO"), lambda: pi.rks([water, "CCO"]), lambda: pi.rks(3.5),
    lambda: pi.frequencies([water]), lambda: pi.rks(water, cart="yes"),
    lambda: pi.energy_function("CCO"),
    lambda: pi.energy_function(pi.Molecule([2], [[0.0, 0.0, 0.0]]), {"xc": "hf"}),
    lambda: simulate(abs, "bow"),
    lambda: simulate(abs, BOW, 1.5),
):
    try:
        call()
    except (TypeError, ValueError) as error:
        print(error)
"""


@pytest.mark.slow
def test_wrong_types_without_the_type_checker_of_the_tests():
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "a Molecule or a list of them is needed, not a str: pi.Molecule.from_smiles('CCO') makes "
        "one of a SMILES",
        "entry 1 is a str, not a Molecule: pi.Molecule.from_smiles('CCO') makes one of a SMILES",
        "a Molecule or a list of them is needed, not a float: pi.Molecule(numbers, positions_bohr) "
        "makes one",
        "one Molecule is needed, not a list",
        "cart is 'yes': give True (6 d and 10 f functions), False (5 and 7) or '6d7f'",
        "one Molecule is needed, not a str: pi.Molecule.from_smiles('CCO') makes one of a SMILES",
        "Settings are needed, not a dict: pi.Settings(basis=..., xc=...) makes them",
        "a Target is needed, not a str: pyscf_ipu.ipu.target('bow') finds one by its name",
        "num_ipus=1.5: give a whole number of 1 or more",
    ]
