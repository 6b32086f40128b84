"""Splits: by molecule, exact where asked for, and nested training sets beside a fixed test set."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
from listed_source import in_parts, joined, many, targets
from packs import QM9

from qm1b.convert.split import Fractions, side
from schnet.errors import UserError
from schnet.runs.settings import Data
from schnet.samples.samples import Samples
from schnet.sources.splitting import SIDES, by_count, by_hash, parse_split, whole, without
from schnet.training.subset import Subset, subsets


def divided(source, split):
    """Rows of each side, by their targets."""
    return {
        name: [t for samples in Subset(source, split, name).parts() for t in targets(samples)]
        for name in SIDES
    }


def lengths(sides):
    return {name: len(rows) for name, rows in sides.items()}


def test_by_hash_is_that_of_qm1b_and_keeps_conformers_together():
    source = in_parts(many(300, conformers=4), 70)
    fractions = Fractions(0.5, 0.3, 0.2)
    found = divided(source, by_hash(fractions, seed=3))
    assert sorted(joined(found.values())) == list(range(300))
    for name, rows in found.items():
        assert rows
        assert {side(f"mol{row // 4}", 3, fractions) for row in rows} == {name}
    assert divided(source, by_hash(fractions, seed=4)) != found


def test_by_count_is_exact_and_does_not_depend_on_the_order():
    samples = many(200, conformers=2)
    split = by_count(in_parts(samples, 30), (60, 25, 10), seed=1)
    found = divided(in_parts(samples, 30), split)
    molecules = {name: {row // 2 for row in rows} for name, rows in found.items()}
    assert lengths(molecules) == {"train": 60, "valid": 25, "test": 10}
    assert lengths(found) == {"train": 120, "valid": 50, "test": 20}
    assert len(set(joined(found.values()))) == 190
    turned = samples.take(np.arange(200)[::-1])
    same = by_count(in_parts(turned, 50), (60, 25, 10), seed=1)
    other = by_count(in_parts(samples, 30), (60, 25, 10), seed=2)
    sides, again, others = (
        [rule.side_of(f"mol{i}") for i in range(100)] for rule in (split, same, other)
    )
    assert again == sides
    assert others != sides
    with pytest.raises(UserError, match=r"60 \+ 40 \+ 10 = 110 molecules, but listed has 100"):
        by_count(in_parts(samples, 30), (60, 40, 10))


def test_what_may_be_asked_for():
    assert parse_split("2400,300,300") == (2400, 300, 300)
    assert parse_split("0.8, 0.1, 0.1") == Fractions(0.8, 0.1, 0.1)
    assert parse_split("1,0,0") == Fractions(1.0, 0.0, 0.0)
    assert parse_split("2,0,1") == (2, 0, 1)
    for text in ("", "0.8,0.1", "0.8,0.1,0.2", "a,b,c", "0,1,0", "-1,1,1", "0,5,5", "1,2,3,4"):
        with pytest.raises(UserError, match="give three numbers for training"):
            parse_split(text)


def test_a_smaller_training_set_lies_in_a_larger_one():
    source = in_parts(many(500, conformers=3), 50)
    train = Subset(source, by_hash(Fractions(0.6, 0.2, 0.2)), "train")
    everything = [t for samples in train.parts() for t in targets(samples)]
    last = set()
    for n in (1, 10, 100, len(everything)):
        smaller = train.limited(n, seed=5)
        rows = [t for samples in smaller.parts() for t in targets(samples)]
        assert len(rows) == n == smaller.bound
        assert last < set(rows) <= set(everything)
        last = set(rows)
    again = train.limited(10, seed=5).limited(100, seed=5)
    assert again.threshold == train.limited(100, seed=5).threshold
    other = train.limited(100, seed=6)
    assert {t for s in other.parts() for t in targets(s)} != {
        t for s in train.limited(100, seed=5).parts() for t in targets(s)
    }
    # Not the beginning of the file, but spread over it.
    assert sum(len(s) > 0 for s in train.limited(100, seed=5).parts()) == len(source.sizes)
    for n in (0, len(everything) + 1):
        with pytest.raises(UserError, match=f"--limit is {n}, but listed has {len(everything)}"):
            train.limited(n)


def keys(subset):
    return set(Samples.concatenate(list(subset.parts())).keys)


def test_a_run_has_three_sides():
    rows = Data((QM9,), "gap", split="40,12,8", split_seed=2)
    found = subsets(rows)
    sides = {name: keys(subset) for name, subset in found.items()}
    assert lengths(sides) == {"train": 40, "valid": 12, "test": 8}
    assert len(set.union(*sides.values())) == 60
    few = subsets(replace(rows, limit=15))
    assert len(keys(few["train"])) == 15
    assert keys(few["train"]) < sides["train"]
    assert (keys(few["valid"]), keys(few["test"])) == (sides["valid"], sides["test"])
    described = few["train"].describe()
    assert described["limit"] == 15
    assert described["split"]["counts"] == {"train": 40, "valid": 12, "test": 8}
    assert described["units"] == {"positions": "angstrom", "gap_au": "hartree"}


def test_files_of_their_own(tmp_path):
    text = gzip.decompress(QM9.read_bytes())
    paths = [tmp_path / f"{name}.extxyz" for name in SIDES]
    for path in paths:
        path.write_bytes(text)
    train, valid, test = paths
    found = subsets(Data((train,), "gap", valid_data=(valid,), test_data=(test,)))
    assert [subset.source.path for subset in found.values()] == paths
    assert [len(keys(subset)) for subset in found.values()] == [60, 60, 60]
    found = subsets(Data((train,), "gap", split="0.6,0.2,0.2", test_data=(test,)))
    assert keys(found["train"]) | keys(found["valid"]) == keys(found["test"])
    assert not keys(found["train"]) & keys(found["valid"])
    rest = without(Fractions(0.6, 0.2, 0.2), ("test",))
    assert isinstance(rest, Fractions)
    assert (rest.train, rest.test) == (pytest.approx(0.75), 0.0)
    with pytest.raises(UserError, match="asks for 8 test molecules, but --test-data was given"):
        subsets(Data((train,), "gap", split="40,12,8", test_data=(test,)))
    counted = subsets(Data((train,), "gap", split="40,12,0", test_data=(test,)))
    assert [len(keys(subset)) for subset in counted.values()] == [40, 12, 60]
    few = subsets(Data((train,), "gap", split="40,0,0", valid_data=(valid,), test_data=(test,)))
    assert [len(keys(subset)) for subset in few.values()] == [40, 60, 60]
    assert whole("test").mask(many(3), "train").tolist() == [False] * 3
