"""How to install the packages of an extra: by their own names, which work wherever pip does."""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement

DISTRIBUTION = "pyscf-ipu"


def how_to_install(extra: str) -> str:
    """A command, for example `pip install "ase>=3.23"`.

    Args:
        extra: a name among the project's optional dependencies.
    """
    try:
        lines = requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # run from its sources, without an installation
        return f"pip install '.[{extra}]' in the checkout"
    return "pip install " + " ".join(f'"{name}"' for name in _packages(extra, lines))


def _packages(extra: str, lines: list[str]) -> Iterator[str]:
    """Names and versions of an extra, and of the extras that it consists of."""
    for requirement in map(Requirement, lines):
        marker = requirement.marker
        if marker is None or not marker.evaluate({"extra": extra}):
            continue
        if requirement.name == DISTRIBUTION:
            for part in sorted(requirement.extras):
                yield from _packages(part, lines)
        else:
            yield f"{requirement.name}{requirement.specifier}"
