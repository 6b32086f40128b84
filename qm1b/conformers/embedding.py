"""From a molecular graph to geometries: RDKit's ETKDGv3, then a force field if one is asked for.

RDKit is in Angstrom, what is returned in Bohr.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.molecule.smiles import etkdg, heavy_first
from qm1b.process.worker import BUSY_SHARE
from qm1b.rows.schema import Conformer, Drop

if TYPE_CHECKING:
    from rdkit import Chem
    from rdkit.Chem import rdDistGeom

ETKDG, ETKDG_RANDOM, GIVEN = "etkdg", "etkdg_random", "given"

NOT_RELAXED = "none"

RELAX_STEPS = 1000
"""Most steps of RDKit's minimiser; molecules of this size need some 50."""

CHUNK = 64
"""Conformers per call of RDKit; a call that runs out of time loses all of its own."""

MAX_TIMEOUT = 2**31 - 1
"""Longest time limit in seconds that RDKit can store."""

RELAX = ("none", "mmff", "uff")
"""Values of --relax."""


@dataclass(frozen=True)
class Embedded:
    """What became of one molecule: its conformers, and why there are fewer than asked for."""

    line: int
    conformers: tuple[Conformer, ...]
    drop: Drop | None = None
    timed_out: bool = False
    """Whether conformers are missing because the time ran out."""
    starved: bool = False
    """Whether the time ran out while this process had too little of the processor: another try may
    give others, or more."""


class NoParameters(ValueError):
    """The force field does not know the molecule."""


def molecule_seed(run_seed: int, identity: str) -> int:
    """Seed of a molecule: 1 <= seed < 2**31, from the run's seed and canonical SMILES."""
    digest = hashlib.sha256(f"{run_seed}\n{identity}".encode()).digest()
    return 1 + int.from_bytes(digest[:8], "little") % (2**31 - 2)


def embedded(
    graph: Chem.Mol, like: Conformer, count: int, seconds: float = 0.0, relax: str = NOT_RELAXED
) -> Embedded:
    """Up to `count` conformers of an RDKit molecule that has its hydrogens.

    RDKit makes them in chunks of CHUNK, each with a seed of its own. Plain ETKDGv3 comes first;
    what fails is tried once more from random coordinates, as ring systems and cages often need. A
    call of RDKit that runs out of time returns nothing, so only the chunks before it are kept.

    Args:
        graph: RDKit molecule, hydrogens added; its conformers are replaced.
        like: what the conformers have in common; with the same seed, 0 <= seed < 2**31, they are
            the same ones, except where the time runs out.
        count: conformers asked for; there may be fewer, or none.
        seconds: limit for all of it, 0 for none; a call is asked to stop at whole seconds.
        relax: none, mmff (UFF where MMFF94 has no parameters) or uff.

    Raises:
        NoParameters: the force field, and UFF, lack parameters.
    """
    from rdkit import rdBase

    clock = Clock(seconds)
    how: list[str] = []
    relaxation: list[str] = []
    angstrom: list[np.ndarray] = []
    with rdBase.BlockLogs():
        for first in range(0, count, CHUNK):
            if clock.is_over:
                break
            seed = _seed_of_chunk(like.seed, first // CHUNK)
            names = _chunk(graph, min(CHUNK, count - first), seed, clock=clock)
            relaxation += _relaxed(graph, relax) if names else []
            angstrom += [conformer.GetPositions() for conformer in graph.GetConformers()]
            how += names
    numbers = np.array([atom.GetAtomicNum() for atom in graph.GetAtoms()], dtype=np.int64)
    order = heavy_first(numbers)
    atoms = numbers[order].astype(np.uint8)
    conformers = tuple(
        replace(
            like,
            numbers=atoms,
            positions=xyz[order] / BOHR_TO_ANGSTROM,
            embedding=name,
            relaxation=field,
        )
        for xyz, name, field in zip(angstrom, how, relaxation, strict=True)
    )
    timed_out = len(how) < count and clock.has_struck
    return Embedded(like.line, conformers, timed_out=timed_out, starved=clock.starved)


class Clock:
    """The time limit of a molecule.

    A limit that strikes while the process is stopped says nothing about the molecule. So a strike
    counts only if the process had the processor for BUSY_SHARE of the time: a molecule that needs
    less than half of its limit never loses anything because somebody else was in the way.
    """

    def __init__(self, seconds: float) -> None:
        self._start = _times()
        self._deadline = self._start[0] + seconds if seconds else float("inf")
        self.has_struck = False
        """Whether something was cut short, or left out."""
        self.starved = False
        """Whether it was by a strike that does not count."""

    @property
    def is_over(self) -> bool:
        """Whether to start nothing more."""
        if not self.has_struck and _times()[0] >= self._deadline:
            self._strike(self._start)
        return self.has_struck

    def embed(
        self, graph: Chem.Mol, count: int, parameters: rdDistGeom.EmbedParameters, share: float
    ) -> None:
        """RDKit's embedding, within a part of the time that is left."""
        from rdkit.Chem import rdDistGeom

        start = _times()
        left = share * (self._deadline - start[0])
        parameters.timeout = 0 if left == float("inf") else max(1, min(int(left), MAX_TIMEOUT))
        rdDistGeom.EmbedMultipleConfs(graph, count, parameters)
        if parameters.timeout and time.monotonic() - start[0] >= parameters.timeout:
            self._strike(start)

    def _strike(self, since: tuple[float, float]) -> None:
        """The limit was reached by what has been done since then."""
        wall, processor = (now - then for now, then in zip(_times(), since, strict=True))
        self.has_struck = True
        self.starved |= processor < BUSY_SHARE * wall


def _times() -> tuple[float, float]:
    """Seconds on the clock, and seconds of the processor that this process has had."""
    return time.monotonic(), time.process_time()


def _chunk(graph: Chem.Mol, count: int, seed: int, clock: Clock) -> list[str]:
    """Embed up to `count` conformers into `graph`; how each was found."""
    plain = etkdg(graph, count, seed, embed=clock.embed)
    return [ETKDG] * plain + [ETKDG_RANDOM] * (graph.GetNumConformers() - plain)


def _seed_of_chunk(seed: int, chunk: int) -> int:
    """The molecule's own for the first one: a few conformers do not depend on CHUNK."""
    if chunk == 0:
        return seed
    return int(np.random.SeedSequence([seed, chunk]).generate_state(1)[0]) % 2**31


def _relaxed(graph: Chem.Mol, relax: str) -> list[str]:
    """Relax all conformers in place; returns for each the force field, and whether it finished."""
    from rdkit.Chem import rdForceFieldHelpers as fields

    if relax == "none":
        return [NOT_RELAXED] * graph.GetNumConformers()
    if relax == "mmff" and fields.MMFFHasAllMoleculeParams(graph):
        name, ends = "mmff94", fields.MMFFOptimizeMoleculeConfs(graph, maxIters=RELAX_STEPS)
    elif fields.UFFHasAllMoleculeParams(graph):
        name, ends = "uff", fields.UFFOptimizeMoleculeConfs(graph, maxIters=RELAX_STEPS)
    else:
        tried = "neither MMFF94 nor UFF has" if relax == "mmff" else "UFF has no"
        raise NoParameters(f"{tried} parameters for this molecule")
    return [name if failed == 0 else f"{name}_unfinished" for failed, _ in ends]
