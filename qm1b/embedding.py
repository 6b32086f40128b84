"""From a molecular graph to geometries: RDKit's ETKDGv3, then a force field if one is asked for.

Shape legend: A atoms, K conformers. RDKit is in Angstrom, what is returned in Bohr.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.units import BOHR_TO_ANGSTROM

ETKDG, ETKDG_RANDOM, GIVEN = "etkdg", "etkdg_random", "given"

NOT_RELAXED = "none"

RELAX_STEPS = 1000
"""Of RDKit's minimiser; molecules of this size need some 50."""

RELAX = ("none", "mmff", "uff")
"""Values of --relax."""


@dataclass(frozen=True)
class Embeddings:
    """Geometries of one molecule."""

    numbers: Int[np.ndarray, " A"]
    """Atomic numbers, heavy atoms first."""
    positions: Float[np.ndarray, "K A 3"]
    """Bohr."""
    embedding: tuple[str, ...]
    """How each was found."""
    relaxation: tuple[str, ...]
    """With which force field each was relaxed."""


class NoParameters(ValueError):
    """The force field does not know the molecule."""


def embeddings(
    graph: Any, count: int, seed: int, timeout: int = 0, relax: str = NOT_RELAXED
) -> Embeddings:
    """Up to `count` conformers of an RDKit molecule that has its hydrogens.

    First ETKDGv3 as it is; what fails is tried once more from random coordinates, as ring systems
    and cages often need.

    Args:
        graph: RDKit molecule, hydrogens added; its conformers are replaced.
        count: conformers asked for; K may be fewer, or 0.
        seed: RDKit random seed, 0 <= seed < 2**31; the same seed gives the same conformers.
        timeout: RDKit's own limit in seconds for one call, 0 for none.
        relax: none, mmff (UFF where MMFF94 has no parameters) or uff.

    Raises:
        NoParameters: the force field, and UFF, lack parameters.
    """
    from rdkit import rdBase
    from rdkit.Chem import rdDistGeom

    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = seed
    parameters.timeout = timeout
    with rdBase.BlockLogs():
        rdDistGeom.EmbedMultipleConfs(graph, count, parameters)
        found = graph.GetNumConformers()  # the list returned is [-1] after a timeout
        if found < count:
            parameters.useRandomCoords = True
            parameters.clearConfs = False
            parameters.randomSeed = (seed + 1) % 2**31
            rdDistGeom.EmbedMultipleConfs(graph, count - found, parameters)
        how = [ETKDG] * found + [ETKDG_RANDOM] * (graph.GetNumConformers() - found)
        relaxation = _relaxed(graph, relax) if how else []
    numbers = np.array([atom.GetAtomicNum() for atom in graph.GetAtoms()], dtype=np.int64)
    order = np.argsort(numbers == 1, kind="stable")
    shape = (graph.GetNumConformers(), len(numbers), 3)
    angstrom = np.array([c.GetPositions() for c in graph.GetConformers()]).reshape(shape)
    positions = angstrom[:, order] / BOHR_TO_ANGSTROM
    return Embeddings(numbers[order], positions, tuple(how), tuple(relaxation))


def _relaxed(graph: Any, relax: str) -> list[str]:
    """Relax all conformers in place; says with what, and which did not come to an end."""
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
