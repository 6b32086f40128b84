"""What people ask for and is not there: the message names what is."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from ase.build import molecule as ase_molecule
from oracle import HYDROGEN, mole_of

import pyscf_ipu as pi
from pyscf_ipu.advice.nearest import KEYWORDS, NAMES, as_molecule, explains_keywords


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hessian", "has no attribute 'hessian': pi.frequencies"),
        ("uks", "has no attribute 'uks': only closed shells.*pyscf.dft.UKS"),
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


@pytest.mark.parametrize("function", [pi.rks, pi.forces, pi.optimize, pi.frequencies])
@pytest.mark.parametrize(
    ("keyword", "words"),
    [
        ("charge", r"'charge': the charge belongs to the molecule: Molecule\(..., charge=1\)"),
        ("spin", "'spin': only closed shells"),
        ("solvent", "'solvent': there is no solvent model"),
        ("precison", "'precison': did you mean 'precision'?"),
        ("qqqq", "'qqqq': use one of molecules?, basis, xc"),
    ],
)
def test_keywords(function, keyword, words):
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) got an unexpected.*{words}"):
        function(HYDROGEN, **{keyword: 1})


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
