"""Few conformers of many molecules, or many of few, at one number of rows."""

from collections import Counter

import pytest
from listed_source import in_parts, many, targets

from schnet.errors import UserError
from schnet.sources.splitting import whole
from schnet.training.subset import Subset


def train(rows, conformers, size=7):
    return Subset(in_parts(many(rows, conformers), size), whole("train"), "train")


def chosen(subset):
    return [t for part in subset.parts() for t in targets(part)]


def of_molecules(subset):
    return Counter(m for part in subset.parts() for m in part.molecules.tolist())


@pytest.mark.parametrize("each", [1, 2, 5])
def test_at_most_so_many_of_each(each):
    found = train(100, 5).few_conformers(each)
    assert of_molecules(found) == {f"mol{i}": each for i in range(20)}
    assert found.bound == 20 * each
    assert found.describe()["conformers_per_molecule"] == each


@pytest.mark.parametrize("each", [1, 2, 5])
def test_molecules_are_added_until_there_are_enough_rows(each):
    found = of_molecules(train(100, 5).few_conformers(each, rows=20))
    assert found.total() == 20
    assert sorted(found.values()) == [each] * (20 // each)


def test_more_rows_contain_fewer_and_seeds_differ():
    source = train(100, 5)
    few, more = (set(chosen(source.few_conformers(3, rows=n))) for n in (11, 31))
    assert (len(few), len(more)) == (11, 31)
    assert few < more
    assert set(chosen(source.few_conformers(1))) < set(chosen(source.few_conformers(2)))
    assert set(chosen(source.few_conformers(1, seed=1))) != set(chosen(source.few_conformers(1)))
    # The parts in which the rows lie decide which conformers are taken, not which molecules.
    elsewhere = train(100, 5, size=100).few_conformers(5, rows=20)
    assert of_molecules(elsewhere) == of_molecules(source.few_conformers(5, rows=20))


def test_too_many_rows_are_refused():
    with pytest.raises(UserError, match="has 40 train rows: give 1 to 40"):
        train(100, 5).few_conformers(2, rows=41)
