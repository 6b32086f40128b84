"""Energy and forces of a correction: on the host, in float64, one molecule at a time.

The counterpoise correction of a composite method is a second term.
"""

from importlib.metadata import version
from importlib.util import find_spec
from threading import Lock
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer
from packaging.version import Version

from pyscf_ipu.base.errors import MissingPackage, UsageError
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.xc.dispersion import chai_head_gordon as chai
from pyscf_ipu.xc.suffixes.names import Dispersion
from pyscf_ipu.xc.suffixes.parameters import (
    CHAI_HEAD_GORDON,
    COUNTERPOISE_PACKAGE,
    D3BJ,
    D3ZERO,
)

Atoms = tuple[Integer[np.ndarray, " A"], Float[np.ndarray, "A 3"]]
"""Atomic numbers, and positions in Bohr."""


ONE_AT_A_TIME = Lock()
"""The first calls of dftd3 by two threads at once can return zeros: its tables are not yet made."""


LEAST_VERSION = "1.7"
"""The first version of COUNTERPOISE_PACKAGE with both methods: earlier ones give zero for what
they do not know."""


class Correction(NamedTuple):
    """What a correction adds to an energy and to forces."""

    energy: float
    """Hartree."""
    forces: Float[np.ndarray, "A 3"]
    """-dE/dR in Hartree/Bohr."""


def check_installed(kind: Dispersion | None) -> None:
    """Raise MissingPackage if a package that computes a correction is missing, or too old."""
    for package in () if kind is None else kind.packages:
        if find_spec(package) is None:
            raise MissingPackage(
                f"dispersion corrections need the package {package}: run "
                f"{how_to_install('dispersion')}"
            )
    if kind is None or kind.counterpoise is None:
        return
    installed = version(COUNTERPOISE_PACKAGE)
    if Version(installed) < Version(LEAST_VERSION):
        raise MissingPackage(
            f"{kind.functional} needs {COUNTERPOISE_PACKAGE} {LEAST_VERSION} or newer, and "
            f"{installed} is installed: run {how_to_install('dispersion')}"
        )


def check_coefficients(kind: Dispersion | None, numbers: Integer[np.ndarray, " A"]) -> None:
    """Raise InvalidMolecule if a correction has no coefficients for an element; D3 and D4 have."""
    if kind is not None and kind.method == CHAI_HEAD_GORDON:
        chai.check_coefficients(numbers)


def correction(
    kind: Dispersion | None,
    numbers: Integer[np.ndarray, " A"],
    positions: Float[np.ndarray, "A 3"],
    charge: int = 0,
) -> Correction:
    """The correction of a molecule; zero without one, and for a single atom.

    Args:
        kind: which one.
        numbers: atomic numbers.
        positions: in Bohr.
        charge: of the molecule in e; D4 alone depends on it.

    Raises:
        MissingPackage: its package is not installed.
        InvalidMolecule: it has no parameters for an element.
        RuntimeError: the package's own, for a geometry that it cannot use.
    """
    check_installed(kind)
    if kind is None or len(numbers) < 2:
        return Correction(0.0, np.zeros((len(numbers), 3)))
    where = np.asarray(positions, np.float64)
    if kind.method == CHAI_HEAD_GORDON:
        energy, gradient = chai.chai_head_gordon(numbers, where, **kind.parameters.values)
        return Correction(energy, -gradient)
    alike = kind.method in (D3BJ, D3ZERO)
    with ONE_AT_A_TIME:
        terms = [
            _dftd3(numbers, where, kind) if alike else _dftd4(numbers, where, charge, kind=kind)
        ]
        if kind.counterpoise is not None:
            terms.append(_counterpoise(numbers, where, kind))
    energies, gradients = ([term[name] for term in terms] for name in ("energy", "gradient"))
    return Correction(float(sum(energies)), -np.sum(gradients, axis=0))


def _dftd3(numbers: np.ndarray, positions: np.ndarray, kind: Dispersion) -> dict[str, np.ndarray]:
    from dftd3.interface import DispersionModel, RationalDampingParam, ZeroDampingParam

    damping = {D3BJ: RationalDampingParam, D3ZERO: ZeroDampingParam}[kind.method]
    chosen = damping(**kind.parameters.values)
    return DispersionModel(numbers, positions).get_dispersion(chosen, grad=True)


def _dftd4(
    numbers: np.ndarray, positions: np.ndarray, charge: int, kind: Dispersion
) -> dict[str, np.ndarray]:
    from dftd4.interface import DampingParam, DispersionModel

    damping = dict(kind.parameters.values)
    of_model = {name: damping.pop(name) for name in ("ga", "gc", "wf") if name in damping}
    model = DispersionModel(numbers, positions, float(charge), None, None, "d4", **of_model)
    return model.get_dispersion(DampingParam(**damping), grad=True)


def _counterpoise(
    numbers: np.ndarray, positions: np.ndarray, kind: Dispersion
) -> dict[str, np.ndarray]:
    from dftd3.interface import GeometricCounterpoise

    name = kind.functional.replace("-", "")  # any other spelling is zero
    terms = GeometricCounterpoise(numbers, positions, method=name).get_counterpoise(grad=True)
    if not np.isfinite(terms["energy"]):
        raise UsageError(
            f"{kind.functional} has no counterpoise correction for an element of this molecule, "
            f"of the atomic numbers {sorted(set(numbers.tolist()))}: take another functional"
        )
    return terms
