"""Runs that several of the generator's tests look at."""

import pytest
from fake_runs import LINES, MANY, fake_run, give_free_atoms


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run of the fake engine with everything in it: drops, errors, no convergence."""
    return fake_run(tmp_path_factory.mktemp("run"), LINES)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The folder of an undisturbed run of MANY."""
    return fake_run(tmp_path_factory.mktemp("whole"), MANY, processes=True)[0]


@pytest.fixture
def blank_pictures(monkeypatch):
    """The overview of a card is an empty picture: drawing it takes a second.

    The tests of cards and of `qm1b stats` look at real ones.
    """
    from matplotlib.figure import Figure

    from qm1b.report import plots

    def overview(found, folder):
        return plots.save(Figure(figsize=(1, 1)), folder / "overview.png")

    monkeypatch.setattr(plots, "overview", overview)


@pytest.fixture
def partial(whole, tmp_path):
    """A copy of the whole run, to be damaged."""
    out = tmp_path / "out-2"
    out.mkdir()
    for path in whole.iterdir():
        (out / path.name).write_bytes(path.read_bytes())
    return out


@pytest.fixture(scope="session")
def with_forces(tmp_path_factory):
    """A run of the fake engine with forces, ions and energies of free atoms (minus Z / 4)."""
    text = "O\nC[N+](=O)[O-] nitromethane\nC/C=C/C 0123\nCCl\n[NH4+]\nCO\n"
    out, _ = fake_run(tmp_path_factory.mktemp("forces"), text, forces=True, keep_charged=True)
    return give_free_atoms(out)
