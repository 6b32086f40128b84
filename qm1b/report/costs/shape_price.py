"""One conformer of every shape on the simulated IPU, several shapes at a time.

Most of a price is compiling a program that counts the turns of its loops; threads compile side by
side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyscf_ipu.base.host.cores import n_cores
from pyscf_ipu.base.terminal import counted
from pyscf_ipu.ipu.profile.data import NOTHING, Cycles
from pyscf_ipu.settings import Settings
from qm1b.errors import UserError
from qm1b.rows.schema import Json

if TYPE_CHECKING:
    from pyscf_ipu.ipu import Target
    from pyscf_ipu.ipu.report.profile import Profile
    from pyscf_ipu.molecule.molecule import Molecule

MOST_AT_ONCE = 4
"""Prices at a time, each of which takes up to a gigabyte."""


@dataclass(frozen=True)
class ShapePrice:
    """One conformer of a shape."""

    label: str
    molecules: int
    """Of the input, that have this shape."""
    sample: str
    """The molecule that was priced."""
    cycles: Cycles
    seconds: Cycles
    """On one IPU."""
    max_tile_bytes: int
    fits: bool
    unknown_ops: dict[str, int]

    def to_dict(self, share: float) -> Json:
        """In types that JSON has."""
        return {
            "shape": self.label,
            "molecules": self.molecules,
            "share": share,
            "sample": self.sample,
            "cycles": self.cycles.to_dict(),
            "seconds": self.seconds.to_dict(),
            "max_tile_bytes": self.max_tile_bytes,
            "fits": self.fits,
            "unknown_ops": self.unknown_ops,
        }


@dataclass(frozen=True)
class ShapeToPrice:
    """A shape to be priced."""

    label: str
    molecules: int
    """How many have this shape."""
    sample: Callable[[], tuple[str, Molecule]]
    """Name and geometry of one of them."""

    def begun(self, thing: str) -> str:
        """What is said as its price begins; `thing` has the shape, as a molecule or a row."""
        return f"pricing {self.label}: {counted(self.molecules, thing)} ..."


def seconds_of(shapes: Iterable[ShapePrice]) -> Cycles:
    """On one IPU, of all molecules one after another."""
    return sum((s.seconds * s.molecules for s in shapes), NOTHING)


def check_priced(level: Settings) -> None:
    """Raise UserError for a level of theory that an IPU, which has no float64, cannot compute."""
    if level.precision != "float32":
        raise UserError(
            f"an IPU computes in float32, so this level, with precision={level.precision!r}, has "
            "no price: choose a preset in float32, such as qm1b, or qm1b generate with "
            "--precision float32 and --price"
        )


def priced(
    wanted: Sequence[ShapeToPrice],
    how: Callable[[Molecule], Profile],
    tell: Callable[[ShapeToPrice], None],
) -> tuple[ShapePrice, ...]:
    """The prices of shapes, in their order; `tell` hears of each as it begins.

    Raises:
        UserError: no geometry is found for a shape.
    """

    def one(shape: ShapeToPrice) -> ShapePrice:
        tell(shape)
        name, molecule = shape.sample()
        profile = how(molecule)
        # Conformers and results travel beside the computation.
        return ShapePrice(
            label=shape.label,
            molecules=shape.molecules,
            sample=name,
            cycles=profile.cycles,
            seconds=profile.wall_seconds,
            max_tile_bytes=profile.memory.max_tile_bytes,
            fits=profile.memory.fits,
            unknown_ops=profile.unknown_ops,
        )

    with ThreadPoolExecutor(min(n_cores(), MOST_AT_ONCE)) as pool:
        return tuple(pool.map(one, wanted))


def price(
    molecule: Molecule, level: Settings, target: Target, replicas: int, coarse: int
) -> Profile:
    """One conformer on one IPU of a system."""
    from pyscf_ipu.ipu.engine.command import price_rks

    return price_rks(molecule, level, target, replicas=replicas, coarse=coarse)
