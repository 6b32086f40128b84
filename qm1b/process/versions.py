"""The software that a run uses."""

import platform
from collections.abc import Iterable
from importlib import metadata

PACKAGES = ("pyscf-ipu", "jax", "jaxlib", "pyscf", "rdkit", "numpy", "h5py")

PORTABLE = "portable, version 2"
"""The version counts changes of the last digits: 2 has another rounding of Boys functions."""


def versions() -> dict[str, str]:
    """Python, the packages that matter, and which form of the codelets computes."""
    return package_versions(PACKAGES) | {"codelets": _codelets()}


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of these packages."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed as a package"
    return found


def _codelets() -> str:
    from pyscf_ipu.codelets.loading import library

    found = library()
    return f"native, {found.instruction_set}" if found else PORTABLE
