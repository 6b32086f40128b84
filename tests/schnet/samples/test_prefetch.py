import threading
import time

import pytest

from schnet.samples.prefetch import prefetch


def alive():
    return [t for t in threading.enumerate() if t.name.startswith("prefetch")]


def test_prefetch_gives_the_same_items_made_in_another_thread():
    made = []

    def items():
        for i in range(50):
            made.append(threading.current_thread().name)
            yield i

    assert list(prefetch(items(), 3)) == list(range(50))
    assert all(name.startswith("prefetch") for name in made)
    assert not alive()
    assert list(prefetch([], 1)) == []
    with pytest.raises(ValueError, match="at least 1"):
        next(prefetch([1], 0))


def test_prefetch_runs_ahead_but_not_away():
    made, enough = [], threading.Event()

    def items():
        for i in range(100):
            made.append(i)
            if i == 3:
                enough.set()
            yield i

    ahead = prefetch(items(), 4)
    assert next(ahead) == 0
    assert enough.wait(60)
    time.sleep(0.05)  # it could run on
    assert 4 <= len(made) <= 5
    ahead.close()
    assert not alive()


def test_prefetch_passes_errors_on_in_their_place():
    def items():
        yield 1
        yield 2
        raise OSError("disk")

    ahead = prefetch(items(), 2)
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(OSError, match="disk"):
        next(ahead)
    assert not alive()


def test_prefetch_that_is_left_closes_its_source():
    closed = []

    def items():
        try:
            yield from range(100)
        finally:
            closed.append(True)

    source = items()  # this reference keeps it from being closed as garbage
    ahead = prefetch(source, 2)
    assert next(ahead) == 0
    ahead.close()
    assert next(source, None) is None
    assert closed == [True]
    assert not alive()
