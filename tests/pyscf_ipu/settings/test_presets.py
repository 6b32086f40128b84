"""Levels of published datasets: the names, the levels, and why some have none."""

from pathlib import Path

import pytest

import pyscf_ipu as pi
from pyscf_ipu.elements.spellings import plain_name
from pyscf_ipu.settings import PRESETS, preset
from pyscf_ipu.settings.presets import WITHOUT_PRESET
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.solver.platform import MEMORY_SHARE, platform, size_limit
from pyscf_ipu.xc.registry import functional

PAGE = Path(__file__).parents[3] / "docs" / "levels.md"


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_used(name):
    settings = pi.Settings.preset(name)
    assert settings.check() == pi.Settings(**PRESETS[name].level)
    assert pi.Settings.from_dict(settings.to_dict()) == settings
    water = pi.Molecule([8, 1, 1], [[0, 0, 0], [0, 0, 2], [0, 2, 0]])
    assert pi.Solver(settings).shape(water).n_ao >= pi.Solver(settings).n_ao(water.numbers)


@pytest.mark.parametrize(
    ("name", "xc", "basis", "functions"),
    [
        ("qm1b", "475", "sto-3g", False),
        ("qm9", "402", "6-31g(2df,p)", "6d7f"),
        ("pubchemqc", "402", "6-31g*", True),
        ("ani1x", "464", "6-31g*", True),
        ("transition1x", "464", "6-31g*", False),
        ("qmugs", "471", "def2-svp", False),
        ("qh9", "475", "def2-svp", False),
        ("spice", "531", "def2-tzvppd", False),
        ("openff", "402", "dzvp", False),
        ("b97-3c", "327", "def2-mtzvp", False),
    ],
)
def test_the_level_is_the_datasets_own(name, xc, basis, functions):
    """By libxc number, since the names of functionals mean different things in programs."""
    settings = pi.Settings.preset(name)
    assert functional(settings.xc).definition.startswith(f"libxc {xc}")
    assert (settings.basis, settings.cart) == (basis, functions)


def test_dispersion_of_presets():
    kinds = {name for name in PRESETS if pi.Settings.preset(name).dispersion}
    assert kinds == {"qmugs", "spice", "openff", "r2scan-3c", "b97-3c"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *((name, "ani1x") for name in ("ANI-1x", "ani 1x", "ani_1X")),
        *((name, "r2scan-3c") for name in ("r2scan-3c", "r2SCAN-3c", "r2scan3c")),
    ],
)
def test_a_name_may_be_spelled_as_the_authors_do(name, meant):
    assert preset(name) is PRESETS[meant]


def test_an_unknown_name_gets_the_nearest_one_and_all():
    with pytest.raises(ValueError, match=r"preset 'ani3x' \(did you mean 'ani1x'\?\): use one of"):
        pi.Settings.preset("ani3x")
    with pytest.raises(ValueError, match="unknown preset 'x': use one of qm1b, qm9, pubchemqc"):
        preset("x")


def test_a_dataset_out_of_reach_says_why():
    with pytest.raises(ValueError, match="no preset 'ani-2x': it has the level of 'ani1x'"):
        pi.Settings.preset("ani-2x")
    with pytest.raises(ValueError, match=r"no preset 'tmQM'.*TPSSh is not here"):
        pi.Settings.preset("tmQM")
    assert not set(WITHOUT_PRESET) & set(map(plain_name, PRESETS))
    assert all(plain_name(name) == name for name in WITHOUT_PRESET)
    assert len(set(map(plain_name, PRESETS))) == len(PRESETS)


def test_the_page_has_every_preset_and_its_level():
    text = PAGE.read_text()
    for name, found in PRESETS.items():
        rows = [line for line in text.splitlines() if line.startswith(f"| `{name}`")]
        row = next(row for row in rows if pi.Settings.preset(name).in_words in row)
        assert found.rows in row
        assert found.made_with in row
    for name in WITHOUT_PRESET:
        assert name in plain_name(text)


def test_the_size_limit_grows_with_memory(monkeypatch):
    limits = []
    for gib in (1, 8, 64):
        monkeypatch.setattr("pyscf_ipu.solver.platform.available_bytes", lambda: gib * 2**30)  # noqa: B023
        limits.append(size_limit(pi.Settings.preset("qm9")))
    assert limits == sorted(set(limits))
    assert limits[-1] > 200
    assert size_limit(pi.Settings.preset("qm1b")) > limits[-1]


@pytest.mark.slow
@pytest.mark.parametrize("mib", [1, 300, 5000])
def test_one_carbon_atom_more_does_not_fit(monkeypatch, mib):
    """Unless already methane is too large."""
    monkeypatch.setattr("pyscf_ipu.solver.platform.available_bytes", lambda: mib * 2**20)
    level = pi.Settings.preset("qm9")
    here, largest = platform(), size_limit(level)
    shapes = [
        shape_of([6] * n + [1] * (2 * n + 2), level.basis, level.cart, grid=level.grid)
        for n in range(1, 200)
    ]
    fits = [s for s in shapes if here.call_bytes(s, level, 1) <= MEMORY_SHARE * here.room()]
    assert largest == (fits or shapes[:1])[-1].n_ao
