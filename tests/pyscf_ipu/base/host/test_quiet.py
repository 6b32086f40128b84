"""XLA's notes: off while any thread is inside, and back when the last one has left."""

from types import SimpleNamespace

import pytest

from pyscf_ipu.base.host import quiet


@pytest.fixture
def levels(monkeypatch):
    """The levels that were set, in order."""
    seen = []
    monkeypatch.setattr(quiet.utils, "absl_set_min_log_level", seen.append)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    return seen


def test_the_last_one_to_leave_puts_the_level_back(levels):
    with quiet.quiet_xla():
        with quiet.quiet_xla():
            pass
        assert set(levels) == {quiet.FATAL_ALONE}
    assert levels[-1] == 1


def test_an_error_inside_puts_it_back_too(levels):
    with pytest.raises(KeyError), quiet.quiet_xla():
        raise KeyError
    assert levels == [quiet.FATAL_ALONE, 1]


def test_a_user_who_asked_jax_for_notes_gets_them(levels, monkeypatch):
    monkeypatch.setattr(quiet.jax, "config", SimpleNamespace(jax_logging_level="DEBUG"))
    with quiet.quiet_xla():
        pass
    assert levels == []
