"""Integration grids as Gaussian has them: other radii, equal cells, axes that turn with the atoms.

Shape letters: A atoms, R radial points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.base.errors import InvalidMolecule

if TYPE_CHECKING:
    from pyscf.dft.gen_grid import Grids
    from pyscf.gto import Mole

NOBLE = (0, 2, 10, 18, 36)
EFFECTIVE_NUMBER = (1.0, 2.0, 3.0, 3.7)
"""Slater's n* of the shells 1 to 4."""
EQUAL = 1e-7
"""Moments that differ by less than this part of the largest are equal."""
Radial = tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]


def valence_radius(number: int) -> float:
    """Where an element's outermost Slater function is largest, in Bohr.

    J. C. Slater, Phys. Rev. 36, 57 (1930), doi:10.1103/PhysRev.36.57.  These are the radii that
    P. M. W. Gill, B. G. Johnson, J. A. Pople, Chem. Phys. Lett. 209, 506 (1993),
    doi:10.1016/0009-2614(93)80125-9, list for H to Ar.

    Args:
        number: atomic number, 1 to 36; of Sc to Zn the 4s function counts.

    Raises:
        InvalidMolecule: the element is another one.
    """
    if not 0 < number <= NOBLE[-1]:
        raise InvalidMolecule(
            f"atomic number {number}: Gaussian's kind of grid is known from H to Kr; "
            'take grid_kind="pyscf"'
        )
    shell = int(np.searchsorted(NOBLE, number))
    valence = number - NOBLE[shell - 1]
    if shell == 4:  # a d shell belongs to the shell below
        valence = min(valence, 2) if number <= 30 else number - 28
    deeper = NOBLE[shell - 2] if shell > 1 else 0
    inner = number - valence - deeper
    own = 0.30 if shell == 1 else 0.35
    charge = number - deeper - 0.85 * inner - own * (valence - 1)
    n = EFFECTIVE_NUMBER[shell - 1]
    return n * n / charge


def radial_points(number: int, count: int) -> Radial:
    """Distances from a nucleus in Bohr, and weights with r^2 but without 4 pi in Bohr^3.

    C. W. Murray, N. C. Handy, G. J. Laming, Mol. Phys. 78, 997 (1993),
    doi:10.1080/00268979300100651: Euler and Maclaurin's rule for r = R (x / (1 - x))^2, with the
    scale R of `valence_radius`.
    """
    scale, i = valence_radius(number), np.arange(1.0, count + 1)
    left = count + 1 - i
    return scale * (i / left) ** 2, 2 * scale**3 * (count + 1) * i**5 / left**7


def standard_axes(
    numbers: Int[np.ndarray, " A"], positions: Float[np.ndarray, "A 3"]
) -> Float[np.ndarray, "3 3"]:
    """The principal axes of the nuclear charges, as columns: Gaussian's standard orientation.

    Which axis is the first, and where each points, makes no difference to a Lebedev sphere.  Equal
    moments leave axes open.  Such an axis goes through the atom of the largest charge that is
    farthest from the axes already known, or, where no atom is off these, lies near x, y or z.
    """
    charge = np.asarray(numbers, np.float64)
    from_centre = positions - charge @ positions / charge.sum()
    moments, vectors = np.linalg.eigh((charge[:, None] * from_centre).T @ from_centre)
    tolerance, axes = EQUAL * max(moments[-1], 1e-300), np.zeros((3, 0))
    for first in range(3):
        equal = np.abs(moments - moments[first]) <= tolerance
        if equal.sum() == 1:
            axis = vectors[:, first]
        else:
            plane = vectors[:, equal] @ vectors[:, equal].T
            free = plane - plane @ axes @ axes.T
            axis = _through_an_atom(from_centre @ free.T, charge, free)
        axes = np.column_stack([axes, axis])
    return axes


def _through_an_atom(
    inside: Float[np.ndarray, "A 3"], charge: Float[np.ndarray, " A"], free: np.ndarray
) -> np.ndarray:
    """A direction in the space of the projector `free`, in which the atoms lie at `inside`."""
    distance = np.linalg.norm(inside, axis=1)
    far = distance > 1e-3
    if not far.any():
        return free[:, (near := np.diag(free).argmax())] / np.sqrt(free[near, near])
    # Equivalent atoms by where they are, so that the order of a list does not matter.
    chosen = np.lexsort((*inside.T.round(6), distance.round(6), charge, far))[-1]
    return inside[chosen] / distance[chosen]


def pyscf_grids(mole: Mole, size: tuple[int, int]) -> Grids:
    """The grid as an object of PySCF.

    Args:
        mole: where the atoms are.
        size: radial points and points of each sphere.
    """
    from pyscf.dft import gen_grid

    axes = standard_axes(mole.atom_charges(), mole.atom_coords())

    class Turned(gen_grid.Grids):
        """Atomic grids along the molecule's axes."""

        def gen_atomic_grids(self, *args: Any, **options: Any) -> Any:
            plain = super().gen_atomic_grids(*args, **options)
            return {atom: (points @ axes.T, weights) for atom, (points, weights) in plain.items()}

    grids = Turned(mole)
    grids.atom_grid = size  # type: ignore[assignment]
    grids.radii_adjust = None  # type: ignore[assignment]
    grids.prune = None
    grids.radi_method = _pyscf_radial
    return grids


def _pyscf_radial(count: int, number: int, *_: object, **__: object) -> Radial:
    """PySCF multiplies by 4 pi r^2 itself."""
    distance, weights = radial_points(number, count)
    return distance, weights / distance**2
