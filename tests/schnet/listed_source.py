"""Molecules made up for tests, as a source in parts that counts how often each is read."""

from collections import Counter
from pathlib import Path

import numpy as np

from schnet.samples.samples import Sample, Samples
from schnet.sources.base import Reasons, Source


def molecule(carbons, hydrogens, target=0.0, key="", smiles=""):
    """A meaningless chain of this many atoms."""
    numbers = np.array([6] * carbons + [1] * hydrogens, np.uint8)
    positions = np.arange(3 * len(numbers), dtype=np.float32).reshape(-1, 3)
    return Sample(numbers, positions, target, smiles or "C" * carbons, key)


def many(rows, conformers=1, start=0):
    """Rows 0 to `rows` with their number as target; each `conformers` of them are one molecule."""
    found = []
    for i in range(start, start + rows):
        which = i // conformers
        found.append(molecule(1 + which % 5, 2 + which % 3, float(i), f"row {i}", f"mol{which}"))
    return Samples.of(found)


class Listed(Source):
    def __init__(self, *parts):
        super().__init__(Path("listed"))
        self.listed = parts
        self.reads = Counter()

    @property
    def sizes(self):
        return [len(part) for part in self.listed]

    @property
    def units(self):
        return {}

    def fingerprint(self):
        return "listed"

    def part(self, number):
        self.reads[number] += 1
        return super().part(number)

    def read_part(self, number):
        return self.listed[number], Reasons()


def in_parts(samples, size):
    rows = np.arange(len(samples))
    return Listed(*(samples.take(rows[i : i + size]) for i in range(0, len(samples), size)))


def joined(lists):
    return [item for part in lists for item in part]


def targets(samples):
    return samples.targets.astype(int).tolist()
