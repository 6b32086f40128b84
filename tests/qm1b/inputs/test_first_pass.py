"""A first pass in bounded memory: its checksums and its sample."""

import pytest

from qm1b.errors import UserError
from qm1b.inputs import first_pass
from qm1b.inputs.first_pass import FirstPass, checked
from qm1b.inputs.records import Record


def records(n):
    return [Record(number=k, smiles="C" * k) for k in range(1, n + 1)]


def summary(n, limit=None):
    reading = FirstPass(limit)
    for record in records(n):
        reading.add(record)
    return reading.summary("hash", "smiles", ())


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(first_pass, "MOST_CHECKS", 8)
    monkeypatch.setattr(first_pass, "MOST_SAMPLED", 8)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 17, 100, 1000])
def test_samples_are_at_equal_distances(little_memory, n):
    numbers = [record.number for record in summary(n).sample]
    stride = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    assert numbers == [*range(1, n + 1, stride)]
    assert 4 < len(numbers) <= 8 or n <= 4


@pytest.mark.parametrize("n", [1, 8, 9, 50, 100])
@pytest.mark.parametrize("limit", [None, 13, 40])
def test_a_changed_record_is_noticed_before_its_unit_ends(little_memory, tmp_path, n, limit):
    known = summary(n, limit)
    assert len(known.checks) <= 8
    last = min(n, limit or n)
    assert [*checked(records(n), known, last, path=tmp_path)] == records(n)[:last]
    for changed in range(last):
        others = records(n)
        others[changed] = others[changed]._replace(id="x")
        taken = []
        with pytest.raises(UserError, match="has changed since"):
            taken.extend(checked(others, known, last, path=tmp_path))
        end = min(last, -(-(changed + 1) // known.stride) * known.stride)
        assert len(taken) < end


def test_the_sample_ends_at_the_limit():
    assert len(summary(100, limit=5).sample) == 5
