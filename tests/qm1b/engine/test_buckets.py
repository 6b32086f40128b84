"""Buckets: batches of one shape, in the order of arrival."""

from fake_runs import conformer
from hypothesis import given
from hypothesis import strategies as st

from qm1b.engine.buckets import Buckets


def test_full_buckets_and_what_waits():
    buckets = Buckets(lambda shape: 3)
    for line, shape in enumerate("aabab", start=1):
        buckets.add(shape, conformer(line))
    assert list(buckets.full()) == ["a"]
    assert buckets.oldest() == ("a", 1)
    assert [c.line for c in buckets.take("a")] == [1, 2, 4]
    assert list(buckets.full()) == []
    assert list(buckets.fullest()) == ["b"]
    assert [c.line for c in buckets.take("b")] == [3, 5]
    assert buckets.waiting == 0
    assert buckets.oldest() is None


@given(st.lists(st.sampled_from("abc"), max_size=60), st.integers(1, 7))
def test_nothing_is_lost_or_doubled(shapes, size):
    buckets = Buckets(lambda shape: size)
    for line, shape in enumerate(shapes, start=1):
        buckets.add(shape, conformer(line))
    taken = []
    while (shape := next(buckets.fullest(), None)) is not None:
        batch = buckets.take(shape)
        assert 1 <= len(batch) <= size
        taken += [c.line for c in batch]
    assert sorted(taken) == list(range(1, len(shapes) + 1))
