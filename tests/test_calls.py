"""Arguments beyond the third are named where a function of the project is called."""

import ast

import calls
import house
import pytest

MOST = 3


@pytest.mark.parametrize("package", house.PACKAGES)
def test_few_arguments_are_given_by_position(package):
    """A `*` counts as all that it may reach; what goes into a function's own `*args` does not."""
    many = [c for c in calls.calls(house.files(package)) if c.by_position > MOST]
    assert not many, "\n".join(map(str, many))


SHAPES = {
    "from pyscf_ipu.shapes.shape import shape_of\nshape_of(1, 2, 3, 4)": 4,
    "from pyscf_ipu.shapes import shape\nshape.shape_of(1, 2, 3, grid=4)": 3,
    "from pyscf_ipu import shapes\nshapes.shape.shape_of(1, 2, 3, 4)": 4,
    "from pyscf_ipu.codelets import codelet\ncodelet(1, 2, 3, 4, 5)": 2,
    "from pyscf_ipu.nanodft.dft import EnergyParts\nEnergyParts(*map(float, terms))": 6,
    "from pyscf_ipu import Settings\nSettings(1, 2, 3, 4)": 0,  # has none for positions
    "class Four(NamedTuple):\n  a: int\n  b: int\n  c: int\n  d: int\nFour(1, 2, 3, 4)": 4,
    "def four(a, b, c, d=1): ...\nfour(1, *two)": 4,
    "from schnet.samples.accuracy import Errors\nErrors.of(1, 2, 3, 4)": 4,
    "class B:\n  def __init__(self, a, b, c, d): ...\n  def of(cls): cls(*x)\nB.of()": 4,
    "from jax import lax\nlax.fori_loop(1, 2, 3, 4)": 0,
}
"""A text, and how many arguments its last call gives by position."""


@pytest.mark.parametrize(("text", "count"), SHAPES.items())
def test_calls_are_found(tmp_path, monkeypatch, text, count):
    path = tmp_path / "module.py"
    path.write_text(text)
    assert isinstance(ast.parse(text).body[-1].value, ast.Call)
    monkeypatch.setitem(house.MODULES, "tests_module", path)
    found = list(calls.calls(["tests_module"]))
    calls.definitions.cache_clear()
    calls.imports.cache_clear()
    assert max((c.by_position for c in found), default=0) == count
