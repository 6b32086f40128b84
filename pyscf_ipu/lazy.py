"""Public names of a package, each imported when it is first used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy(
    package: str, homes: Mapping[str, str], absent: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`.
        homes: the module of each name, with a leading dot if it lies in the package.
        absent: names that people look for and that are not there; what to use instead.
    """

    def get(name: str) -> object:
        if name not in homes:
            advice = f": {absent[name]}" if absent and name in absent else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{advice}")
        return getattr(import_module(homes[name], package), name)

    def names() -> list[str]:
        return sorted([*vars(sys.modules[package]), *homes])

    return get, names
