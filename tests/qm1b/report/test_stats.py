"""Distributions that are computed on the way, and their pictures."""

import json

import matplotlib.image
import numpy as np
import pytest

from pyscf_ipu.base.units import HARTREE_TO_EV
from qm1b.cli import main
from qm1b.convert.export import export
from qm1b.folder import shards
from qm1b.folder.shard_folder import ShardFolder
from qm1b.report.distribution import Distribution
from qm1b.report.info import describe
from qm1b.report.plots import MAX_BINS, bins
from qm1b.report.stats import NET_FORCE, QUANTITIES, TORQUE, as_text, collect

OF_SOME = ("max_force_ev_angstrom", NET_FORCE, TORQUE, "dispersion_ev", "cycles_to_1_mev")
OF_ALL = [q.name for q in QUANTITIES if q.name not in OF_SOME]


def test_a_distribution_does_not_depend_on_how_it_comes():
    values = np.random.default_rng(1).normal(-1e5, 3.0, 10_000)
    one, many = Distribution("x", "x"), Distribution("x", "x")
    one.add(values)
    for part in np.split(values, [1, 17, 5000]):
        many.add(part)
    for found in (one, many):
        assert found.count == 10_000
        assert found.mean == pytest.approx(values.mean(), rel=1e-14)
        assert found.std == pytest.approx(values.std(), rel=1e-9)
        assert (found.least, found.most) == (values.min(), values.max())
    assert one.to_dict()["percentiles"]["50"] == pytest.approx(np.median(values))


def test_the_sample_is_bounded_and_uniform():
    found = Distribution("x", "x", limit=2000)
    for part in np.split(np.arange(100_000.0), 100):
        found.add(part)
    assert found.sample.size == 2000
    assert len(set(found.sample)) == 2000
    # Five standard deviations of the mean of a uniform sample.
    assert abs(found.sample.mean() - 5e4) < 5 * 1e5 / np.sqrt(12 * 2000)
    found.add(np.array([np.nan, np.inf]))
    assert found.count == 100_000
    assert Distribution("x", "x").to_dict() == {"count": 0}


def test_numbers_of_a_run(finished, tmp_path):
    stats = collect(finished[0])
    assert (stats.rows, stats.converged, stats.molecules) == (14, 8, 7)
    assert stats.statuses == {"converged": 8, "error": 4, "not_converged": 2}
    assert stats.elements["H"] == 8
    assert stats.elements["O"] == 4
    assert "Cl" not in stats.elements  # its rows did not converge
    found = {d.name: d for d in stats.distributions}
    assert list(found) == OF_ALL
    assert found["gap_ev"].mean == pytest.approx(0.5 * HARTREE_TO_EV)
    rows = [row for row in ShardFolder(finished[0]) if row["converged"]]
    norms = [np.linalg.norm(row["dipole"]) for row in rows]
    assert found["dipole_norm_e_bohr"].mean == pytest.approx(np.mean(norms))
    energies = [row["energy"] / len(row["numbers"]) * HARTREE_TO_EV for row in rows]
    assert found["energy_per_atom_ev"].least == pytest.approx(min(energies))
    assert found["atoms"].most == 9
    assert "8 converged" in as_text(stats)
    path = tmp_path / "a.parquet"
    export(finished[0], path, everything=True)
    again = collect(path)
    assert again.elements == stats.elements
    for ours, theirs in zip(again.distributions, stats.distributions, strict=True):
        np.testing.assert_array_equal(np.sort(ours.sample), np.sort(theirs.sample))


def test_bins_hold_everything():
    random = np.random.default_rng(0)
    for values in (random.normal(size=5000), np.ones(3), np.array([1.0, 1.0, 9.0])):
        for whole in (False, True):
            edges = bins(np.round(values) if whole else values, whole)
            assert 1 <= len(edges) - 1 <= MAX_BINS + 1
            found = np.histogram(np.round(values) if whole else values, edges)[0]
            assert found.sum() == values.size
    assert bins(np.array([3.0, 5.0]), whole=True).tolist() == [2.5, 3.5, 4.5, 5.5]
    wide = bins(np.array([1.0, 1000.0]), whole=True)
    assert np.all(np.diff(wide) == 17)


def test_the_command(finished, tmp_path, capsys):
    assert main(["stats", str(finished[0]), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["converged"] == 8
    assert main(["stats", "--json", str(tmp_path / "stats.json"), str(finished[0])]) == 0
    assert json.loads((tmp_path / "stats.json").read_text()) == printed
    assert "converged" in capsys.readouterr().out
    assert main(["stats", str(finished[0]), "--plots", str(tmp_path / "plots")]) == 0
    names = {path.stem for path in (tmp_path / "plots").glob("*.png")}
    assert names == {"overview", *OF_ALL}
    picture = matplotlib.image.imread(tmp_path / "plots" / "overview.png")
    assert picture[..., :3].std() > 0.05
    assert main(["stats", str(tmp_path)]) == 2


def test_json_stays_json_with_plots(finished, tmp_path, capsys):
    assert main(["stats", str(finished[0]), "--json", "--plots", str(tmp_path / "p")]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["converged"] == 8
    assert str(tmp_path / "p" / "overview.png") in said.err


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (2, "13.606 to 13.606 eV, median 13.606 eV, 2 rows without\n"),
        (None, "none: no converged row has one\n"),
    ],
)
def test_info_counts_only_gaps_that_there_are(finished, monkeypatch, first, expected):
    """The first rows, water, lose their LUMO, or all rows do."""
    real = shards.read_whole

    def read_whole(path):
        attributes, shard, drops = real(path)
        if first is None or path == shards.shards(path.parent)[0]:
            shard["lumo"][:first] = np.nan
        return attributes, shard, drops

    monkeypatch.setattr(shards, "read_whole", read_whole)
    assert f"gap          {expected}" in describe(finished[0])
