"""Energy and forces of a correction: on the host, in float64, one molecule at a time."""

from importlib.util import find_spec
from threading import Lock
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.xc.dispersion import chai_head_gordon as chai
from pyscf_ipu.xc.suffixes.names import Dispersion
from pyscf_ipu.xc.suffixes.parameters import CHAI_HEAD_GORDON, D3BJ, D3ZERO

Atoms = tuple[Integer[np.ndarray, " A"], Float[np.ndarray, "A 3"]]
"""Atomic numbers, and positions in Bohr."""


ONE_AT_A_TIME = Lock()
"""The first calls of dftd3 by two threads at once can return zeros: its tables are not yet made."""


class Correction(NamedTuple):
    """What a correction adds to an energy and to forces."""

    energy: float
    """Hartree."""
    forces: Float[np.ndarray, "A 3"]
    """-dE/dR in Hartree/Bohr."""


def check_installed(kind: Dispersion | None) -> None:
    """Raise MissingPackage if the package that computes a correction is missing."""
    if kind is not None and kind.package and find_spec(kind.package) is None:
        raise MissingPackage(
            f"dispersion corrections need the package {kind.package}: run "
            f"{how_to_install('dispersion')}"
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
        terms = _dftd3(numbers, where, kind) if alike else _dftd4(numbers, where, charge, kind=kind)
    return Correction(float(terms["energy"]), -np.asarray(terms["gradient"]))


def _dftd3(numbers: np.ndarray, positions: np.ndarray, kind: Dispersion) -> dict[str, np.ndarray]:
    from dftd3.interface import DispersionModel, RationalDampingParam, ZeroDampingParam

    damping = {D3BJ: RationalDampingParam, D3ZERO: ZeroDampingParam}[kind.method]
    chosen = damping(**kind.parameters.values)
    return DispersionModel(numbers, positions).get_dispersion(chosen, grad=True)


def _dftd4(
    numbers: np.ndarray, positions: np.ndarray, charge: int, kind: Dispersion
) -> dict[str, np.ndarray]:
    from dftd4.interface import DampingParam, DispersionModel

    model = DispersionModel(numbers, positions, charge=float(charge))
    return model.get_dispersion(DampingParam(**kind.parameters.values), grad=True)
