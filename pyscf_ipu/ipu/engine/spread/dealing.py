"""Vertices dealt to tiles one after another."""

from collections.abc import Sequence


def dealt(tiles: Sequence[int], count: int, first: int = 0) -> tuple[int, ...]:
    """The tile of each of `count` vertices, behind `first` others that were dealt before."""
    return tuple(tiles[(first + v) % len(tiles)] for v in range(count))
