"""Stereoisomers: of a geometry, and those that no geometry can be of.

RDKit perceives tetrahedral centres and double bonds. It does not see axes (allenes, biaryls) and
centres with three neighbours, except S and Se.
"""

import numpy as np
from jaxtyping import Float
from rdkit import Chem
from rdkit.Chem import rdDistGeom

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.molecule.smiles import etkdg
from qm1b.conformers.embedding import Clock

FEW_TRIES, SAMPLE_TRIES, RANDOM_TRIES = 10, 20, 100
"""Tries of a conformer: at first; of any stereo; and at last from random coordinates, after RDKit's
own number without, ten per atom. Of 223 possible isomers of rings and natural products all but two
need at most 16, one 22 and one 118, and of 285 impossible ones 239 are recognised."""

SAMPLE = 48
"""Geometries of any stereo in which a relative configuration has to turn up once."""


class ImpossibleStereo(ValueError):
    """No geometry has the stereo of the molecule."""


def isomer_of(graph: Chem.Mol, positions: Float[np.ndarray, "A 3"], smiles: str) -> str:
    """The SMILES of a molecule, with stereo as it is in a geometry.

    Args:
        graph: the molecule without conformers, with its atoms in the order of the positions.
        positions: Bohr.
        smiles: returned if the molecule has no stereoisomers.
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


def leaves_open(graph: Chem.Mol) -> bool:
    """Whether a molecule may have stereo that it does not state."""
    stereo = Chem.FindPotentialStereo(graph)
    return any(each.specified != Chem.StereoSpecified.Specified for each in stereo)


def refuse_impossible(graph: Chem.Mol, seed: int, clock: Clock) -> None:
    """Raise `ImpossibleStereo` for two centres in rings that cannot have the stereo asked for.

    That is so if the molecule can be embedded without stereo, but the relative configuration of the
    two is then always the other one, and with stereo all tries fail. Trying it for every conformer
    would take much longer. Nothing is said if the time runs out.

    Args:
        graph: the molecule with its hydrogens.
        seed: of the molecule.
        clock: limits the time.
    """
    unknown = Chem.ChiralType.CHI_UNSPECIFIED
    centres = [a.GetIdx() for a in graph.GetAtoms() if a.GetChiralTag() != unknown and a.IsInRing()]
    if len(centres) < 2 or _embedded(graph, 1, seed, clock=clock, tries=(FEW_TRIES, FEW_TRIES)):
        return
    free = Chem.Mol(graph)
    Chem.RemoveStereochemistry(free)
    seen = _embedded(free, SAMPLE, seed, clock=clock, tries=(SAMPLE_TRIES, SAMPLE_TRIES))
    if len(seen) < SAMPLE / 2:
        return
    asked = _tags(graph, centres)
    signs = np.array([_tags(each, centres) for each in seen]) * asked  # -1: not as asked
    never = np.argwhere((signs[:, :, None] * signs[:, None] < 0).all(axis=0))
    if not len(never) or _embedded(graph, 1, seed, clock=clock, tries=(0, RANDOM_TRIES)):
        return
    if not clock.has_struck:
        first, second = (centres[i] for i in never[0])
        raise ImpossibleStereo(
            f"impossible stereo: atoms {first} and {second} of the SMILES (from 0) have the other "
            f"relative configuration in all of {len(seen)} geometries"
        )


def _embedded(
    graph: Chem.Mol, count: int, seed: int, *, clock: Clock, tries: tuple[int, int]
) -> list[Chem.Mol]:
    """Up to `count` copies of a molecule, each with a conformer and its stereo.

    Args:
        graph: the molecule.
        count: copies asked for.
        seed: of the first try.
        clock: limits the time.
        tries: of each conformer, plainly and from random coordinates; 0 for RDKit's number.
    """

    def embed(
        graph: Chem.Mol, count: int, parameters: rdDistGeom.EmbedParameters, share: float
    ) -> None:
        parameters.maxIterations = tries[parameters.useRandomCoords]
        clock.embed(graph, count, parameters, share=share)

    whole = Chem.Mol(graph)
    etkdg(whole, count, seed, embed=embed)
    copies = [Chem.Mol(whole, confId=each.GetId()) for each in whole.GetConformers()]
    for copy in copies:
        Chem.AssignAtomChiralTagsFromStructure(copy)
    return copies


def _tags(graph: Chem.Mol, centres: list[int]) -> np.ndarray:
    """[C] 1 or -1 for each centre's handedness, 0 if it has none."""
    signs = {Chem.ChiralType.CHI_TETRAHEDRAL_CW: 1, Chem.ChiralType.CHI_TETRAHEDRAL_CCW: -1}
    return np.array([signs.get(graph.GetAtomWithIdx(i).GetChiralTag(), 0) for i in centres])
