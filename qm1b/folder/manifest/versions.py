"""The software that a run uses."""

import functools
import hashlib
import platform
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from qm1b.folder.manifest.sources import sources
from qm1b.settings import CPU

PACKAGES = ("pyscf-ipu", "jax", "jaxlib", "pyscf", "rdkit", "numpy", "h5py")

PORTABLE = "portable, version 2"
"""The version counts changes of the last digits: 2 has another rounding of Boys functions."""


CONSTRAINTS = Path(__file__).parents[3] / "constraints.txt"
"""The versions of all packages that `PYSCF_IPU_LOCKED=1` installs; only in a checkout."""


def versions(others: Iterable[str] = (), machine: str = CPU) -> dict[str, str]:
    """Python, the packages that matter, the form of the codelets, the hash of this project's code,
    the figures of a simulated machine, the constraints of a checkout.

    Args:
        others: packages that matter besides.
        machine: what computes.
    """
    known = package_versions([*PACKAGES, *others]) | _own_code(machine) | _figures(machine)
    return known | ({"constraints": constraints(CONSTRAINTS)} if CONSTRAINTS.is_file() else {})


def constraints(path: Path) -> str:
    """The hash of a file of constraints, and how many installed packages differ from it."""
    text = path.read_text()
    differing = _differing(text)
    kept = f"not kept for {differing}" if differing else "all kept"
    return f"sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}, {kept}"


@functools.cache
def _differing(text: str) -> int:
    """How many installed packages differ from constraints: packages stay while a process lives,
    and reading what 150 of them say of themselves takes longer than a small run."""
    return sum(1 for line in _pins(text) if not _is_kept(line))


def _pins(text: str) -> Iterator[Requirement]:
    """The lines that hold for this Python and machine."""
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            pin = Requirement(line)
            if pin.marker is None or pin.marker.evaluate():
                yield pin


def _is_kept(pin: Requirement) -> bool:
    """Whether a package has its version, or is not installed at all."""
    try:
        return pin.specifier.contains(metadata.version(pin.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return True


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of these packages."""
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed as a package"
    return versions


def _figures(machine: str) -> dict[str, str]:
    """The figures of a simulated chip."""
    if machine == CPU:
        return {}
    from pyscf_ipu.ipu.chip.target import described_target

    target = described_target(machine)
    figures = target.quantities().items()
    known = [f"{name}={figure.value:g}" for name, figure in figures if figure.value is not None]
    return {"machine": f"{target.ipu_version}: {', '.join(known)}"}


def _own_code(machine: str) -> dict[str, str]:
    from pyscf_ipu.codelets.loading import library

    native = library()
    codelets = f"native, {native.instruction_set}" if native else PORTABLE
    built = native.built_by if native else ""
    return {"codelets": codelets, "sources": sources(built, machine != CPU)}
