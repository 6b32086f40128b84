"""Stereoisomers: of a geometry, and those that no geometry can be of.

RDKit perceives tetrahedral centres and double bonds. It does not see axes (allenes, biaryls) and
centres with three neighbours, except S and Se.
"""

import numpy as np
from jaxtyping import Float
from rdkit import Chem
from rdkit.Chem import rdDistGeom

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from qm1b.conformers.embedding import Clock

FEW_TRIES, RANDOM_TRIES = 20, 100
"""Tries of a conformer: for a first look, and at last from random coordinates, after RDKit's own
number without, ten per atom. Of 223 possible isomers of rings and natural products all but two
need at most 16, one 22 and one 118; of 285 impossible ones 239 are recognised."""

SAMPLE = 48
"""Geometries of any stereo in which a relative configuration has to turn up once."""


class ImpossibleStereo(ValueError):
    """No geometry has the stereo of the molecule."""


def isomer_of(graph: Chem.Mol, positions: Float[np.ndarray, "A 3"], smiles: str) -> str:
    """The SMILES of a molecule with the stereo of a geometry (Bohr).

    The graph has no conformers, and its atoms in the order of the positions. The given SMILES is
    returned if there are no stereoisomers.
    """
    if not Chem.FindPotentialStereo(graph):
        return smiles
    posed = Chem.Mol(graph)
    conformer = Chem.Conformer(len(positions))
    for i, (x, y, z) in enumerate((positions * BOHR_TO_ANGSTROM).tolist()):
        conformer.SetAtomPosition(i, (x, y, z))
    posed.AddConformer(conformer)
    Chem.AssignStereochemistryFrom3D(posed)
    return Chem.MolToSmiles(Chem.RemoveHs(posed))


def refuse_impossible(graph: Chem.Mol, seed: int, clock: Clock) -> None:
    """Raise `ImpossibleStereo` for two centres in rings that cannot have the stereo asked for.

    That is so if all tries fail, but without stereo the graph can be embedded, and the relative
    configuration of the two is always the other one. Nothing is said if the time runs out.
    """

    def embedded(graph: Chem.Mol, count: int, tries: int, random: bool = False) -> Chem.Mol:
        parameters, copy = rdDistGeom.ETKDGv3(), Chem.Mol(graph)
        parameters.randomSeed, parameters.useRandomCoords = seed, random
        parameters.maxIterations = tries
        clock.embed(copy, count, parameters, share=0.5)
        return copy

    asked = np.array([_hand(atom) if atom.IsInRing() else 0 for atom in graph.GetAtoms()])
    centres = np.flatnonzero(asked)
    if len(centres) < 2 or embedded(graph, 1, FEW_TRIES).GetNumConformers():
        return
    free, signs = Chem.Mol(graph), []
    Chem.RemoveStereochemistry(free)
    free = embedded(free, SAMPLE, FEW_TRIES, random=True)
    for conformer in free.GetConformers():
        Chem.AssignAtomChiralTagsFromStructure(free, conformer.GetId())
        signs.append([_hand(atom) for atom in free.GetAtoms()])
    if len(signs) < SAMPLE / 2:
        return
    agree = (np.array(signs) * asked)[:, centres]  # 1 as asked, -1 the other one, 0 not seen
    never = np.argwhere((agree[:, :, None] * agree[:, None] < 0).all(axis=0))
    if not len(never) or embedded(graph, 1, RANDOM_TRIES, random=True).GetNumConformers():
        return
    if not embedded(graph, 1, tries=0).GetNumConformers() and not clock.has_struck:
        first, second = centres[never[0]]
        raise ImpossibleStereo(
            f"impossible stereo: atoms {first} and {second} of the SMILES (from 0) have the other "
            f"relative configuration in all of {len(signs)} geometries"
        )


def _hand(atom: Chem.Atom) -> int:
    """The handedness of an atom, 1 or -1; 0 if it is no stereocentre."""
    tags = Chem.ChiralType
    return {tags.CHI_TETRAHEDRAL_CW: 1, tags.CHI_TETRAHEDRAL_CCW: -1}.get(atom.GetChiralTag(), 0)
