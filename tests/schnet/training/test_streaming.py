"""Streams: every row once per epoch, in an order of seed and epoch alone."""

import pytest
from listed_source import in_parts, joined, many, targets

from qm1b.convert.split import Fractions
from schnet.sources.splitting import by_hash, whole
from schnet.training.streaming import RowStream
from schnet.training.subset import Subset


def train(source):
    return Subset(source, whole("train"), "train")


def epoch(stream, number, start=0):
    return [targets(window) for window in stream.windows(number, start)]


def test_every_row_once_in_a_new_order_each_epoch():
    source = in_parts(many(100), 7)
    stream = RowStream(train(source), window_rows=30, seed=1)
    first, second = epoch(stream, 0), epoch(stream, 1)
    assert [len(window) for window in first].count(28) >= 2
    assert max(map(len, first)) <= 30
    for windows in (first, second):
        assert sorted(joined(windows)) == list(range(100))
    assert first != second
    assert sorted(first[0]) != sorted(second[0])  # other rows are together
    assert any(abs(a - b) > 7 for a, b in zip(first[0], first[0][1:], strict=False))
    assert epoch(RowStream(train(source), 30, 1), 1) == second
    assert epoch(RowStream(train(source), 30, 2), 1) != second
    assert epoch(stream, 1, start=2) == second[2:]
    assert epoch(stream, 1, start=len(second)) == []


def test_what_fits_is_read_once_and_the_rest_never_held(monkeypatch):
    monkeypatch.setattr("schnet.sources.base.KEPT_ROWS", 0)
    source = in_parts(many(100), 10)
    stream = RowStream(train(source), window_rows=100)
    (first,), (second,) = epoch(stream, 0), epoch(stream, 1)
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second
    assert set(source.reads.values()) == {1}
    large = in_parts(many(100), 10)
    windows = RowStream(train(large), window_rows=25).windows(0)
    next(windows)
    assert sum(large.reads.values()) == 2  # parts of the first window only
    list(windows)
    assert sum(large.reads.values()) == 10


def test_a_known_number_of_rows_decides_what_fits():
    side = Subset(in_parts(many(200), 20), by_hash(Fractions(0.2, 0.4, 0.4)), "train")
    rows = sum(map(len, side.parts()))
    assert rows < 70
    assert not RowStream(side, window_rows=100).fits
    (whole,) = epoch(RowStream(side, window_rows=100, rows=rows), 3)
    assert sorted(whole) == sorted(joined(epoch(RowStream(side, window_rows=100), 3)))
    assert RowStream(side.limited(30), window_rows=30).fits


def test_a_part_larger_than_a_window_is_a_window():
    assert [len(w) for w in epoch(RowStream(train(in_parts(many(20), 10)), 3), 0)] == [10, 10]
    with pytest.raises(ValueError, match="at least 1"):
        RowStream(train(in_parts(many(2), 1)), 0)
