"""Public names of a package, each imported when it is first used."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module


def lazy(
    package: str, homes: Mapping[str, str], absent: str | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`.
        homes: the module of each name, with a leading dot if it lies in the package.
        absent: the module of NAMES, names that people look for and that are not there, with what to
            use instead.
    """

    def get(name: str) -> object:
        if name not in homes:
            advice = ""
            if absent and not name.startswith("_"):
                known = import_module(absent, package).NAMES
                advice = f": {known[name]}" if name in known else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{advice}")
        with interrupts_later():
            module = import_module(homes[name], package)
        return getattr(module, name)

    def names() -> list[str]:
        return sorted([*vars(sys.modules[package]), *homes])

    return get, names


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block.

    JAX and NumPy cannot be imported again after half an import: the whole process would be lost.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came: list[tuple] = []
    signal.signal(signal.SIGINT, lambda *interrupt: came.append(interrupt))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[0])
