"""What a row costs: seconds of one core of this project's test machine, by shape and level.

The table is the same on every machine, because it decides where the input is cut into work units.
What a machine takes is measured in priced seconds, so a rate holds for small molecules and large.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from typing import SupportsInt

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.shape import Shape, shape_of

EMBED_SECONDS = 1.3e-3
"""For RDKit to make one conformer: CPU time for ten molecules of nine heavy atoms with twenty
conformers each."""

ROW, GRID = 0.004, 2e-10
REPULSION = {"exact": (4e-9, 4), "ri": (1.2e-6, 3)}
"""Seconds of an SCF: ROW + GRID N^2 G + a N^b, with a and b by the form of electron repulsion."""
PROGRAM, FORCES_PROGRAM, RI_PROGRAM = (5.0, 5.0, 12.0, 25.0), 1.6, 1.5
"""Seconds to make the program of a shape, by the highest angular momentum of the basis; and how
many times as long it takes with forces and with density fitting."""
FORCES, FLOAT64 = 0.6, 3.0
"""What forces add, as a share, and how many times as long float64 takes."""
SIMULATED = 4.0
"""How many times as long a row and a program take on a simulated IPU."""


class Prices:
    """The price of rows at a level of theory.

    Args:
        level: the level.
        forces: whether rows have forces.
        coarse: how coarsely numbers of atoms are rounded up, 0 to 2.
        is_simulated: whether a simulated IPU computes them.
    """

    def __init__(
        self, level: Settings, forces: bool, coarse: int, is_simulated: bool = False
    ) -> None:
        self._level, self._forces, self._coarse = level, forces, coarse
        self._dearer = SIMULATED if is_simulated else 1.0
        self._shapes: dict[tuple[tuple[int, int], ...], Shape | None] = {}
        self._of_shape = functools.cache(self._priced)

    def shape(self, numbers: Iterable[SupportsInt]) -> Shape | None:
        """The shape of some atomic numbers; None if the basis lacks one."""
        atoms = Counter(map(int, numbers))
        key = tuple(sorted(atoms.items()))
        if key not in self._shapes:
            level = self._level
            try:
                self._shapes[key] = shape_of(
                    [*atoms.elements()], level.basis, level.cart, grid=level.grid,
                    coarse=self._coarse,
                )  # fmt: skip
            except InvalidMolecule:
                self._shapes[key] = None
        return self._shapes[key]

    def seconds(self, numbers: Iterable[SupportsInt]) -> float:
        """What a conformer of some atomic numbers takes one core, embedding included."""
        shape = self.shape(numbers)
        return EMBED_SECONDS + (self._of_shape(shape) if shape is not None else 0.0)

    def program_seconds(self, shape: Shape) -> float:
        """What the programs of a shape take one core to make."""
        highest = max(kind.l_max for c in shape.classes for kind in c.kinds)
        seconds = self._dearer * PROGRAM[min(highest, len(PROGRAM) - 1)]
        seconds *= RI_PROGRAM if self._level.form(shape.n_ao) == "ri" else 1.0
        return seconds * (FORCES_PROGRAM if self._forces else 1.0)

    def _priced(self, shape: Shape) -> float:
        """Seconds of one core for a conformer of a shape."""
        n, level = shape.n_ao, self._level
        factor, power = REPULSION[level.form(n)]
        seconds = self._dearer * (ROW + GRID * n**2 * shape.n_grid + factor * n**power)
        seconds *= 1.0 + FORCES * self._forces
        return seconds * (FLOAT64 if level.precision == "float64" else 1.0)
