"""The page of the paper's figures has a picture of each one that the script makes."""

import re
from pathlib import Path

import pytest

from benchmarks.paper.drawing import Job, canvas, keep, plain
from benchmarks.paper.ladder import apart
from benchmarks.paper_figures import FIGURES, main

DOCS = Path(__file__).parents[1] / "docs"


def test_every_figure_has_its_place_on_the_page():
    page = (DOCS / "paper.md").read_text()
    pictures = re.findall(r"\(figures/paper/(\w+)\.png\)", page)
    assert pictures == [*FIGURES]
    assert all(f"`{name}`" in page for name in FIGURES)
    assert {path.stem for path in (DOCS / "figures" / "paper").glob("*.png")} == set(FIGURES)


def test_a_figure_is_kept_with_its_numbers(tmp_path):
    figure = canvas()
    plain(figure.subplots(), "x (eV)", "y").plot([0, 1], [1, 2])
    keep(Job(tmp_path / "new", quick=True), "mine", figure, ("x", "y"), [("a", 1.5), ("b", 2)])
    assert {path.suffix for path in (tmp_path / "new").iterdir()} == {".png", ".pdf", ".csv"}
    assert (tmp_path / "new" / "mine.csv").read_text() == "x,y\na,1.5\nb,2\n"


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
