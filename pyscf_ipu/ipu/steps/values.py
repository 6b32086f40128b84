"""Variables and loops of a program that is being priced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyscf_ipu.ipu.steps.compute_sets import PricedStep
from pyscf_ipu.ipu.steps.places import Place
from pyscf_ipu.ipu.steps.tile_memory import Held
from pyscf_ipu.ipu.vertices.trip_counts import Path


@dataclass(frozen=True, eq=False)
class Value:
    """A variable of the program."""

    place: Place
    size: int
    itemsize: int
    buffers: tuple[Held, ...] = ()
    constant: np.ndarray | None = None
    """Its value, if that is known when the program is compiled."""
    view: bool = False
    unique: int = 0
    """Number of different elements of a view or a constant, if it is not the size."""
    source: np.ndarray | None = None
    """[n_tiles] bytes that a view takes its elements from."""
    ipu: int = 0
    """Where it is, in a program of stages."""
    home: Place | None = None
    """Tiles that an array in streaming memory was on, and comes back to."""
    made_in: object = None
    """The compute set that was open when it was made, if there was one."""

    def bytes(self) -> np.ndarray:
        """[n_tiles] bytes that it takes on each tile."""
        return self.place.bytes(self.itemsize)

    @property
    def distinct(self) -> int:
        """Number of different elements that it shows."""
        return self.unique or self.size

    def kept_place(self) -> Place | None:
        """The place of a value, if the program put it on tiles; else None."""
        on_tiles = not self.view and self.constant is None and self.place.key[0] == "tiles"
        return self.place if on_tiles else None

    def taken_from(self) -> np.ndarray:
        """[n_tiles] bytes that its elements come from."""
        return self.bytes() if self.source is None else self.source


@dataclass(frozen=True)
class Loop:
    """A block that runs as often as the site `trips` counts, or a fixed number of times."""

    trips: Path | int
    body: list[PricedStep | Loop | Either]
    name: str = "loop"


@dataclass(frozen=True)
class Either:
    """A batched loop with a vertex for each lane, or with turns of all: the cheaper one counts."""

    lanes: int
    apart: list[PricedStep | Loop | Either]
    together: list[PricedStep | Loop | Either]
