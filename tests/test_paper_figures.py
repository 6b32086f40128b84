"""The page of the paper's figures has a picture of each one that the script makes."""

import csv
import json
import re
from math import nan
from pathlib import Path

import numpy as np
import pytest

from benchmarks.paper import speed
from benchmarks.paper.ladder import apart
from benchmarks.paper_figures import FIGURES, main
from paper import errors
from paper.drawing import Job, canvas, keep, plain

DOCS = Path(__file__).parents[1] / "docs"


def test_every_figure_has_its_place_on_the_page():
    page = (DOCS / "figures.md").read_text()
    pictures = re.findall(r"\(figures/paper/(\w+)\.png\)", page)
    assert pictures == [*FIGURES]
    assert all(f"`{name}`" in page for name in FIGURES)
    assert {path.stem for path in (DOCS / "figures" / "paper").glob("*.png")} == set(FIGURES)


def test_a_figure_is_kept_with_its_numbers(tmp_path):
    figure = canvas()
    plain(figure.subplots(), "x (eV)", "y").plot([0, 1], [1, 2])
    keep(
        Job(tmp_path / "new", quick=True),
        "mine",
        figure,
        ("x", "y"),
        [("a", 1.5), ("b", 2), ("c", -113.123456789)],
    )
    assert {path.suffix for path in (tmp_path / "new").iterdir()} == {".png", ".pdf", ".csv"}
    assert (tmp_path / "new" / "mine.csv").read_text() == "x,y\na,1.5\nb,2\nc,-113.123456789\n"


def test_an_unknown_figure_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path), "nothing"])
    assert "no figure nothing: there are error_histograms" in capsys.readouterr().err


def test_a_line_takes_away_what_two_numbers_say():
    one = {(1, 0): 5.0, (1, 1): 6.0, (2, 0): 8.0, (3, 0): 1.0}
    other = {place: 0.5 * gap + 1.0 for place, gap in one.items() if place != (3, 0)}
    raw, after_line = apart(one, other)
    assert raw == pytest.approx(1e3 * (1.5 + 2.0 + 3.0) / 3)
    assert after_line == pytest.approx(0.0, abs=1e-9)


def test_sets_that_take_minutes_are_kept_for_the_quick_form(tmp_path, monkeypatch):
    computed, kept = [], tmp_path / "kept.json"
    result = speed.Computed(0.6, 0.04, 2e-3, 8e-3, 4e6, 15e6)
    monkeypatch.setattr(speed, "_computed", lambda job, basis: computed.append(basis) or result)
    speed.five_carbons(Job(tmp_path, quick=False), kept)
    assert computed == ["sto-3g", "6-31g", "6-31g*"]
    assert json.loads(kept.read_text()) == dict.fromkeys(computed[1:], result._asdict())
    result = result._replace(bow_low_s=3e-3)
    speed.five_carbons(Job(tmp_path, quick=True), kept)
    assert computed[3:] == ["sto-3g"]
    rows = list(csv.DictReader((tmp_path / "five_carbons.csv").open()))
    assert [row["bow_low_s"] for row in rows] == ["0.003", "0.002", "0.002"]


def test_the_kept_prices_are_below_what_was_published(tmp_path, monkeypatch):
    result = speed.Computed(nan, nan, 2e-3, 8e-3, 4e6, 15e6)
    monkeypatch.setattr(speed, "_computed", lambda job, basis: result)
    speed.five_carbons(Job(tmp_path, quick=True, times=False))
    rows = list(csv.DictReader((tmp_path / "five_carbons.csv").open()))
    assert [row["basis"] for row in rows] == ["sto-3g", "6-31g", "6-31g*"]
    assert [float(row["published_cycles"]) for row in rows] == [77.7e6, 108.7e6, 302.8e6]
    assert all(float(r["bow_low_cycles"]) < float(r["published_cycles"]) for r in rows)
    assert all(
        float(r["bow_high_s"]) == pytest.approx(float(r["bow_high_cycles"]) / 1.85e9, rel=1e-6)
        for r in rows[1:]
    )


def test_cycles_have_a_column_for_each_way_and_a_style_for_each_precision():
    at = np.arange(20.0)
    curve = {"energy": -1.0 + np.exp(-at), "commutator_norm": np.exp(-at)}
    every = [(precision, way) for precision in errors.STYLES for way in errors.WAYS]
    figure = errors._cycles_picture(dict.fromkeys(every, curve), -1.0, "CO")
    panels = np.array(figure.axes).reshape(3, len(errors.WAYS))
    assert [axes.get_title() for axes in panels[0]] == [*errors.WAYS]
    units = [axes.get_ylabel().split()[-1] for axes in panels[:, 0]]
    assert units == ["(eV)", "(meV)", "(Hartree)"]
    assert all(len(axes.lines) == len(errors.STYLES) for axes in figure.axes)
    styles = {(line.get_color(), line.get_linewidth()) for line in panels[1, 0].lines}
    assert len(styles) == len(errors.STYLES)
    shown = panels[1, 0].lines[0].get_ydata()
    assert shown[0] == pytest.approx(1e3 * 27.211386245988)
    assert shown.min() >= errors.LEAST_MEV
