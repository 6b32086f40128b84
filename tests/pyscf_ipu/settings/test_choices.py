"""What a level may be is checked when it is made, in a process without JAX and PySCF too."""

import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from pyscf.dft import gen_grid

from pyscf_ipu import Settings
from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.numerics.precision import ACCURACIES, PRECISIONS
from pyscf_ipu.settings.choices import CHOICES, SPHERES

WRONG = {
    "basis": [(3, "basis is 3: give a name")],
    "xc": [
        (None, "xc is None: give a name"),
        ("b3lyp6", r"unknown functional 'b3lyp6' \(did you mean 'b3lyp'\?\): use one of hf"),
        ("lda-d4", r"'lda-d4': there are no D4 parameters of 'lda', only of b3lyp"),
    ],
    "grid_level": [
        *((size, r"grid_level is .*give a level, 0 to 9, or") for size in (-1, 10, True, "3", 3.0)),
        *((size, "spheres have 6, 14") for size in ((75, 300), (75,), (0, 302), (75, 302, 1))),
    ],
    "precision": [
        ("Mixd", r"precision is 'Mixd' \(did you mean 'mixed'\?\): give one of float32, mixed, f"),
        (32, "precision is 32: give one of float32, mixed, float64"),
    ],
    "cart": [(cart, f"cart is {cart!r}: give True") for cart in ("5d10f", 1, None)],
    "max_cycles": [(n, "max_cycles is .*: give a whole number of at least 1") for n in (0, 1.5)],
    "prune": [("no", "prune is 'no': give True or False")],
    "grid_kind": [
        ("orca", "grid_kind is 'orca': give one of pyscf, gaussian"),
        ("gaussian", 'grid_kind="gaussian" with grid_level=3 and prune=True: .*prune=False'),
    ],
    "jk": [("df", "jk is 'df': give one of exact, ri, auto")],
    "fixed_cycles": [(-1, "fixed_cycles is -1: give a whole number of at least 0")],
    "accuracy": [("few", "accuracy is 'few': give one of energy, orbitals, properties")],
    "first_cycles": [("few", "first_cycles is 'few': give one of coarse, full")],
    "nlc_grid": [(10, "nlc_grid is 10: give a level, 0 to 9, or"), ((9, 9), "spheres have 6")],
    "history": [(1, "history is 1: give True or False")],
}
"""By field: a value that it cannot have, and what the message says."""


def test_every_field_is_checked():
    assert list(WRONG) == [field.name for field in fields(Settings)]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [(name, value, words) for name, cases in WRONG.items() for value, words in cases],
)
def test_a_wrong_level_cannot_be_made(name, value, words):
    for make in (Settings, lambda **given: replace(Settings(), **given), dict_of_settings):
        with pytest.raises(UsageError, match=words):
            make(**{name: value})


def dict_of_settings(**given):
    return Settings.from_dict(Settings().to_dict() | given)


def test_the_names_are_those_of_the_engine():
    assert set(CHOICES["precision"]) == set(PRECISIONS)
    assert set(CHOICES["accuracy"]) == set(ACCURACIES)
    assert sorted(n for n in gen_grid.LEBEDEV_NGRID.tolist() if n > 1) == list(SPHERES)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"grid_level": [75, 302]}, {"grid_level": (75, 302)}),
        ({"grid_level": np.array([75, 302])}, {"grid_level": (75, 302)}),
        ({"grid_level": np.int64(3)}, {}),
        ({"max_cycles": np.int32(50), "cart": np.False_, "history": np.False_}, {}),
        ({"xc": np.str_("b3lyp"), "precision": np.str_("float32")}, {}),
        ({"xc": "B3LYP"}, {}),
    ],
)
def test_one_level_has_one_value(given, plain):
    """One program, one solver: programs are kept by the `repr` of their level."""
    made, meant = Settings(**given), Settings(**plain)
    assert (made, repr(made), hash(made)) == (meant, repr(meant), hash(meant))
    assert Settings.from_dict(given) == replace(Settings(), **given) == meant


PROBE = """
import sys
from pyscf_ipu import Settings
Settings(xc="wB97X-D3(BJ)", grid_level=[75, 302], jk="ri")
Settings.preset("qm9")
try:
    Settings(xc="b3lyp6")
except ValueError:
    print([name for name in ("jax", "pyscf", "scipy") if name in sys.modules])
"""


def test_making_and_refusing_one_imports_nothing_heavy():
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
