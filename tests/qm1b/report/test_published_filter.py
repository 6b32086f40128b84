"""QM1B's own filter, on rows of which one knows what it must say."""

import numpy as np

from pyscf_ipu.base.units import HARTREE_TO_EV
from qm1b.report.published_filter import PublishedFilter
from qm1b.report.stats import as_text, collect
from qm1b.rows.batch import Batch

EV = 1 / HARTREE_TO_EV


def rows(**columns):
    n = len(columns["energy_std"])
    filled = {"status": np.array(["converged"] * n, object), "homo": np.zeros(n)} | columns
    return Batch({name: np.asarray(values) for name, values in filled.items()})


def test_verdicts_beside_ours_and_pyscfs():
    found = PublishedFilter()
    status = np.array(["converged"] * 5 + ["not_converged"], object)
    found.add(
        rows(
            status=status,
            energy_std=np.array([0.001, 0.009, 0.011, 0.001, np.nan, 0.005]) * EV,
            lumo=np.array([0.1, 0.1, 0.1, 0.0, 0.1, 0.1]),
            energy=np.zeros(6),
            reference_energy=np.array([0.001, 0.5, 0.001, np.nan, 0.3, 0.2]) * EV,
        ),
        {},
    )
    assert found.to_dict() == {
        "rows": 6,
        "by_std": 2,
        "by_gap": 1,
        "dropped": 3,
        "dropped_converged": 3,
        "kept_not_converged": 1,
        "audited": 5,
        "kept_wrong": 2,
        "dropped_right": 1,
    }
    first, second = found.as_text()
    assert "drop 3 of 6 rows (2 by std, 1 by gap)" in first
    assert "2 kept that are wrong by more than 10 meV (40 %), 1 dropped that are right" in second


def test_without_an_audit_or_a_spread():
    found = PublishedFilter()
    found.add(rows(energy_std=np.array([0.0]), lumo=np.array([0.1]), energy=np.zeros(1)), {})
    assert len(found.as_text()) == 1
    found = PublishedFilter()
    found.add(Batch({"energy": np.zeros(3)}), {})
    assert found.as_text() == []


def test_a_run_that_ends_at_convergence_is_judged_after_it():
    """The spread of cycles before convergence drops no row; with a fixed number it counts."""
    status = np.array(["converged", "not_converged", "converged"], object)
    batch = rows(status=status, energy_std=np.array([0.3, 0.3, np.nan]) * EV, lumo=np.full(3, 0.1))
    batch.columns["energy"] = np.zeros(3)
    for fixed, dropped in ((0, 2), (20, 3)):
        found = PublishedFilter()
        found.add(batch, {"precision": "float32", "fixed_cycles": fixed})
        assert found.dropped == dropped


def test_stats_say_it(finished):
    stats = collect(finished[0])
    assert stats.published_filter.rows == stats.rows
    assert stats.to_dict()["published_filter"]["dropped"] == stats.published_filter.dropped
    assert "QM1B's own filter" in as_text(stats)
