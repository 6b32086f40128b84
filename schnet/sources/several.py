"""Several files as one source: the parts of the first, then those of the next."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from ..samples import Samples, texts
from .base import Reasons, Source


class Several(Source):
    """Sources one after another."""

    def __init__(self, path: Path, sources: Sequence[Source]) -> None:
        super().__init__(path)
        self.sources = tuple(sources)

    @cached_property
    def sizes(self) -> list[int]:
        """Of the parts of all of them."""
        return [size for source in self.sources for size in source.sizes]

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        return [(i, n) for i, source in enumerate(self.sources) for n in range(len(source.sizes))]

    @property
    def units(self) -> dict[str, str]:
        """Of all of them; where two differ in one column, both."""
        found: dict[str, str] = {}
        for source in self.sources:
            for name, unit in source.units.items():
                known = found.get(name, unit).split(" or ")
                found[name] = " or ".join(dict.fromkeys([*known, unit]))
        return found

    def fingerprint(self) -> str:
        """Of those of all of them, in their order."""
        prints = "\n".join(source.fingerprint() for source in self.sources)
        return hashlib.sha256(prints.encode()).hexdigest()

    def read_part(self, number: int) -> tuple[Samples, Reasons]:
        """See `Source.read_part`."""
        which, local = self._places[number]
        source = self.sources[which]
        samples, reasons = source.read_part(local)
        keys = texts([f"{source.path.name} {key}" for key in samples.keys])
        return replace(samples, keys=keys), reasons
