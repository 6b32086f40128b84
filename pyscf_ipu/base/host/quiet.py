"""XLA without its notes: what it writes to the terminal while it compiles and loads."""

import functools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import jax
from jaxlib import utils  # type: ignore[attr-defined]

FATAL_ALONE = 3
"""Least level of XLA's messages while a program is compiled or loaded.  Loading, it takes two
preferences of its compiler for instructions, and misses them in every processor
(github.com/openxla/xla/issues/44565)."""


@contextmanager
def quiet_xla() -> Iterator[None]:
    """Without XLA's notes, unless JAX was asked to show a level of them.

    The level belongs to the process: the first thread that comes lowers it, the last one that
    leaves puts it back.
    """
    if jax.config.jax_logging_level not in (None, "NOTSET"):  # type: ignore[attr-defined]
        yield
        return
    inside = _inside()
    with inside.lock:
        inside.threads += 1
        utils.absl_set_min_log_level(FATAL_ALONE)
    try:
        yield
    finally:
        with inside.lock:
            inside.threads -= 1
            if not inside.threads:
                utils.absl_set_min_log_level(int(os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1")))


@dataclass
class _Inside:
    """How many threads are inside of `quiet_xla`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    threads: int = 0


@functools.cache
def _inside() -> _Inside:
    """The state of this process; a fork has another one."""
    os.register_at_fork(after_in_child=_inside.cache_clear)
    return _Inside()
