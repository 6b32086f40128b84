"""Memory of the tiles that a program runs on, in PopVision's categories and regions.

A tile's memory has two regions.  Code runs only from the first.  Loads of 16 bytes, which feed the
matrix unit, need the second, whose banks are interleaved.  All else may be in either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyscf_ipu.base.errors import TileMemoryError

CODE = frozenset(("Vertex Code", "Control Code", "Internal Exchange Code"))
"""Categories of memory that code runs from."""
NEAR, FAR, OVERFLOWED = "Non-interleaved", "Interleaved", "Overflowed"
"""PopVision's names of the regions, and of what has no place."""


@dataclass(frozen=True)
class Buffer:
    """A variable at the moment of the highest load: its bytes on the fullest tile."""

    name: str
    stage: str
    category: str
    tile_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Lifetime:
    """A variable, and from which to which point of the timeline it is live."""

    name: str
    stage: str
    first: int
    """Point of the timeline at which it is made."""
    end: int
    """The first point at which it is gone."""
    tile_bytes: int
    """On the tile that holds most of it."""
    total_bytes: int


@dataclass(frozen=True)
class Memory:
    """Bytes per tile in PopVision's categories, and over the program."""

    limit_bytes: int
    """Capacity of a tile."""
    by_category: dict[str, np.ndarray]
    """Category -> bytes [n_tiles], each tile at its own highest load."""
    always_live: np.ndarray
    """[n_tiles] bytes that are live throughout."""
    timeline: tuple[tuple[str, int], ...]
    """(label, bytes of the fullest tile) after each program step that allocates."""
    largest: tuple[Buffer, ...]
    """The buffers that fill the fullest tile."""
    executable_bytes: int | None = None
    """The first region, the part of a tile's memory that code can run from, if that is known."""
    streaming_bytes: int = 0
    """In the machine's DRAM: what the program keeps off the chip, all replicas of it together."""
    streaming_limit_bytes: int | None = None
    interleaved: np.ndarray | None = None
    """[n_tiles] bytes that have to be in the second region at once, at most; None: nothing has."""
    lifetimes: tuple[Lifetime, ...] = ()
    """Of the variables that fill the tiles, large ones first."""
    stashed: np.ndarray | None = None
    """[2, n_tiles] bytes of a micro-batch: what a stage holds of it between its forward and its
    backward pass, and how much it has received; None without a backward pass."""

    @property
    def code(self) -> np.ndarray:
        """[n_tiles] bytes of code."""
        none = np.zeros_like(self.always_live)
        return sum((v for k, v in self.by_category.items() if k in CODE), none)

    @property
    def regions(self) -> dict[str, np.ndarray]:
        """Bytes [n_tiles] in each region, and those that have no place; {} if it is not known.

        Data fill the second region first, because code cannot go there.
        """
        if self.executable_bytes is None:
            return {}
        first, second = self.executable_bytes, self.limit_bytes - self.executable_bytes
        code, data = self.code, self.per_tile - self.code
        far = np.minimum(data, second)
        near = np.minimum(code, first)
        near = np.minimum(near + data - far, first)
        # Of the second region too much may be asked for while the first has room.
        crowded = np.maximum(self.only_interleaved - second, 0)
        lost = np.maximum(self.per_tile - near - far, crowded)
        return {NEAR: near, FAR: far, OVERFLOWED: lost}

    @property
    def only_interleaved(self) -> np.ndarray:
        """[n_tiles] as `interleaved`, with zeros for None."""
        return np.zeros_like(self.always_live) if self.interleaved is None else self.interleaved

    @property
    def code_overflowing(self) -> np.ndarray:
        """Tiles with more code than can run."""
        most = self.executable_bytes
        return np.flatnonzero(self.code > most) if most is not None else np.zeros(0, int)

    @property
    def interleaved_overflowing(self) -> np.ndarray:
        """Tiles that need more interleaved memory at once than they have."""
        if self.executable_bytes is None:
            return np.zeros(0, int)
        return np.flatnonzero(self.only_interleaved > self.limit_bytes - self.executable_bytes)

    @property
    def fits(self) -> bool:
        """Whether every tile has room for what it holds, wherever that has to be."""
        of_tiles = self.overflowing, self.code_overflowing, self.interleaved_overflowing
        return not any(over.size for over in of_tiles)

    def check(self) -> None:
        """Raise TileMemoryError if anything does not fit."""
        over, code, limit = self.overflowing, self.code_overflowing, self.streaming_limit_bytes
        if over.size:
            named = (f": {b.name!r} ({b.tile_bytes} bytes)" for b in self.largest[:1])
            raise TileMemoryError(
                f"{over.size} tiles need up to {self.max_tile_bytes} bytes and have "
                f"{self.limit_bytes}; the largest buffer there is{''.join(named)}: use more IPUs "
                "or a smaller molecule"
            )
        if code.size:
            raise TileMemoryError(
                f"{code.size} tiles have up to {int(self.code.max())} bytes of code, and only "
                f"{self.executable_bytes} can run: use fewer kinds of vertices, or subroutines "
                "that they share (pyscf_ipu.tiles.subroutine)"
            )
        if self.interleaved_overflowing.size:
            raise TileMemoryError(
                f"{self.interleaved_overflowing.size} tiles need up to "
                f"{int(self.only_interleaved.max())} bytes of interleaved memory at once, for "
                "operands of the matrix unit, and have "
                f"{self.limit_bytes - (self.executable_bytes or 0)}: multiply smaller blocks, or "
                "give a smaller available_memory_proportion"
            )
        if limit is not None and self.streaming_bytes > limit:
            raise TileMemoryError(
                f"{self.streaming_bytes} bytes are to be kept off the chip, and the machine has "
                f"{limit}: keep less, or use more machines"
            )

    @property
    def per_tile(self) -> np.ndarray:
        return sum(self.by_category.values(), np.zeros_like(self.always_live))

    @property
    def max_tile_bytes(self) -> int:
        return int(self.per_tile.max())

    @property
    def overflowing(self) -> np.ndarray:
        """Tiles that hold more than they can."""
        return np.flatnonzero(self.per_tile > self.limit_bytes)
