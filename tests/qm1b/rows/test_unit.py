"""A unit of which some lines were computed again."""

import fake_runs
from fake_runs import conformer

from qm1b.rows.schema import Drop
from qm1b.rows.unit import Unit


def row(line, number, energy=-1.0, suspect=""):
    who = conformer(line, conformer=number)
    return fake_runs.row(who, energy=energy, converged=True, suspect=suspect)


def numbers(unit):
    return [(r.conformer.line, r.conformer.conformer) for r in unit.rows]


def test_another_try_takes_the_place_of_the_first_unless_it_gave_less():
    short = Drop(1, "C", "embed_timeout", "1 of 2 conformers")
    first = Unit(0, rows=[row(1, 0), row(2, 0), row(3, 0)], drops=[short, Drop(4, "", "empty")])
    both = first.renewed(Unit(0, rows=[row(1, 1), row(1, 0)]))
    assert numbers(both) == [(1, 0), (1, 1), (2, 0), (3, 0)]
    assert [drop.line for drop in both.drops] == [4]
    both = first.renewed(Unit(0, drops=[Drop(1, "C", "embed_crash")]))
    assert numbers(both) == numbers(first)
    assert both.drops == first.drops


def test_a_drop_that_was_found_again_has_the_new_words():
    first = Unit(0, drops=[Drop(1, "C", "embed_timeout", "old"), Drop(2, "", "empty")])
    both = first.renewed(Unit(0, drops=[Drop(1, "C", "embed_crash", "new")]))
    assert [(d.line, d.detail) for d in both.drops] == [(1, "new"), (2, "")]


def test_what_looks_wrong_is_looked_for_again_in_the_whole():
    first = Unit(0, rows=[row(n, 0) for n in (1, 2)] + [row(3, 0, suspect="energy_outlier")])
    both = first.renewed(Unit(0, rows=[row(4, 0, energy=-2.0)]))
    assert [r.suspect for r in both.rows] == ["", "", "", "energy_outlier"]
