"""Messages about missing packages name packages that pip finds."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from pyscf_ipu.base import extras
from pyscf_ipu.base.extras import how_to_install

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]


def requirements(command):
    return [Requirement(x) for x in command.removeprefix("pip install ").split('"')[1::2]]


@pytest.mark.parametrize("extra", ["ase", "bench", "cluster"])
def test_the_packages_of_an_extra(extra):
    wanted = [Requirement(line) for line in PROJECT["optional-dependencies"][extra]]
    assert requirements(how_to_install(extra)) == wanted


def test_an_extra_that_includes_another():
    found = [requirement.name for requirement in requirements(how_to_install("train"))]
    assert found[0] == "equinox"
    assert found[-1] == "ase"
    assert "pyscf-ipu" not in found
    assert "numpy" not in found  # a dependency of everything


def test_without_an_installation(monkeypatch):
    monkeypatch.setattr(extras, "DISTRIBUTION", "not-installed-anywhere")
    assert how_to_install("ase") == "pip install '.[ase]' in the checkout"
