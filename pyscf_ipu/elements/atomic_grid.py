"""Integration grids of atoms: tables made on the host (`becke` makes a molecule's grid of them).

By default the grid is the one PySCF builds (Treutler-Ahlrichs radial points, Lebedev spheres, Becke
cells with Treutler's size adjustment, ``nwchem_prune``), so energies agree point by point.
All of it depends on an element only, and is tabulated once in float64.  Lengths in Bohr.
Shape letters: A atoms, G points of one atom.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from pyscf import gto
from pyscf.data import elements, radii
from pyscf.dft import gen_grid, radi
from pyscf.dft.LebedevGrid import MakeAngularGrid

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.elements.gaussian_grid import radial_points

HEAVIEST = 103
"""Lawrencium, the last element in Treutler and Ahlrichs' table of radial scale factors."""


SHELL_POINTS = 512
"""Points of a shell of space that `near_order` divides into octants."""


class Grid(NamedTuple):
    """Which points an atom gets."""

    size: int | tuple[int, int]
    """A level, or the radial points and the points of each sphere, the same for all elements."""
    pruned: bool = True
    """Fewer points on spheres near the nucleus and far from it."""
    kind: str = "pyscf"
    """Whose radial points and cells: "pyscf" or "gaussian" (`gaussian_grid`)."""

    @property
    def turns(self) -> bool:
        """Whether the spheres turn with the molecule."""
        return self.kind == "gaussian"


ROUGHEST, ROUGH = Grid((6, 14), pruned=False), Grid((10, 50), pruned=False)
CARBON, MANY_POINTS = 6, 2000
"""A carbon atom with more points than this has so large a grid that 500 cost little."""


@dataclass(frozen=True, eq=False)
class AtomicGrid:
    """Points around one nucleus, before the molecule is divided into cells; read-only."""

    points: Float[np.ndarray, "G 3"]
    """Bohr, relative to the nucleus."""
    weights: Float[np.ndarray, " G"]
    """Bohr^3, 4 pi r^2 dr times the angular weight."""

    def __len__(self) -> int:
        return len(self.weights)


@cache
def atomic_grid(number: int, grid: Grid | int) -> AtomicGrid:
    """The grid of one element, cached; neighbours lie together (`near_order`).  By default PySCF's:

    O. Treutler, R. Ahlrichs, J. Chem. Phys. 102, 346 (1995), doi:10.1063/1.469408; V. I. Lebedev,
    D. N. Laikov, Doklady Mathematics 59, 477 (1999).

    Args:
        number: atomic number, at least 1.
        grid: its size; a level, 0 (coarse) to 9 (fine), is PySCF's default grid of that level.

    Raises:
        UsageError: the atomic number is out of range.
    """
    size, pruned, kind = grid if isinstance(grid, Grid) else Grid(grid)
    _check_numbers(np.asarray([number]), lowest=1)
    if kind == "pyscf":
        points, weights = _pyscf_grid(number, size, pruned)
    else:
        points, weights = _gaussian_grid(number, size)
    order = near_order(points)
    points = np.array(points[order], dtype=np.float64, order="C")
    weights = np.array(weights[order], dtype=np.float64)
    points.flags.writeable = False
    weights.flags.writeable = False
    return AtomicGrid(points, weights)


def _gaussian_grid(number: int, size: int | tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights, all points of all spheres."""
    assert isinstance(size, tuple)
    distance, weights = radial_points(number, size[0])
    sphere = MakeAngularGrid(size[1])
    points = distance[:, None, None] * sphere[:, :3]
    return points.reshape(-1, 3), 4 * np.pi * np.outer(weights, sphere[:, 3]).ravel()


def _pyscf_grid(
    number: int, size: int | tuple[int, int], pruned: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of Treutler and Ahlrichs's radii."""
    # PySCF wants some basis and a matching spin before it accepts an atom; the grid ignores both.
    symbol = elements.ELEMENTS[number]
    basis = {symbol: [[0, [1.0, 1.0]]]}
    atom = gto.M(atom=f"{symbol} 0 0 0", basis=basis, spin=number % 2, verbose=0)
    tables = gen_grid.gen_atomic_grids(
        atom,
        atom_grid={} if isinstance(size, int) else {symbol: size},
        radi_method=radi.treutler,
        level=size if isinstance(size, int) else 0,
        prune=gen_grid.nwchem_prune if pruned else None,
    )
    ((points, weights),) = tables.values()
    return points, weights


def near_order(points: Float[np.ndarray, "G 3"]) -> Int[np.ndarray, " G"]:
    """An order of the points about a nucleus in which neighbours follow one another.

    Spheres are taken together until they have 512 points or more, and each such shell of space is
    walked through octant by octant, so that 64 points one after another lie in one of them.
    """
    _, sphere = np.unique(np.round(np.linalg.norm(points, axis=1), 12), return_inverse=True)
    inside = np.cumsum(np.bincount(sphere)) - np.bincount(sphere)  # points on smaller spheres
    shell = (inside // SHELL_POINTS)[sphere]
    octant = (points > 0) @ np.array([4, 2, 1])
    return np.lexsort((sphere, octant, shell))


def coarse_grid(grid: Grid) -> Grid:
    """A grid of few points, which stands for a grid in most cycles of an SCF.

    It knows within some percent how the exchange-correlation matrix answers to a change of the
    density; of the matrix itself it knows the first digit.
    """
    return ROUGH if len(atomic_grid(CARBON, grid)) > MANY_POINTS else ROUGHEST


def bragg_adjust(numbers: Int[np.ndarray, " A"]) -> Float[np.ndarray, " A"]:
    """Square roots of Bragg-Slater radii in sqrt(Bohr), the ``radius`` of :func:`becke_weights`.

    Treutler's adjustment is Becke's with sqrt(R) for R: a_ij = (chi_j/chi_i - chi_i/chi_j) / 4,
    cut to [-1/2, 1/2].  J. C. Slater, J. Chem. Phys. 41, 3199 (1964), doi:10.1063/1.1725697;
    O. Treutler, R. Ahlrichs, doi:10.1063/1.469408.

    Args:
        numbers: atomic numbers; 0 is an empty (padded) slot and gets the harmless value 1.

    Raises:
        UsageError: if an atomic number is negative or above 103.
    """
    numbers = np.asarray(numbers)
    _check_numbers(numbers, lowest=0)
    return np.where(numbers == 0, 1.0, np.sqrt(radii.BRAGG[numbers]))


def cell_sizes(numbers: Int[np.ndarray, " A"], grid: Grid) -> Float[np.ndarray, " A"]:
    """The ``radius`` of :func:`becke_weights`: of equal cells, or as `bragg_adjust` has it."""
    return bragg_adjust(numbers) if grid.kind == "pyscf" else np.ones(len(numbers))


def _check_numbers(numbers: np.ndarray, lowest: int) -> None:
    """Refuse atomic numbers without a grid."""
    bad = numbers[(numbers < lowest) | (numbers > HEAVIEST)]
    if bad.size:
        raise UsageError(f"atomic numbers must lie in {lowest}..{HEAVIEST}, got {bad.tolist()}")
