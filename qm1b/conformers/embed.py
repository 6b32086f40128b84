"""The conformers of one molecule, by RDKit."""

import time
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from rdkit import Chem, rdBase

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.molecule.smiles import heavy_first
from qm1b.conformers.embedding import (
    GIVEN,
    NOT_RELAXED,
    Clock,
    Embedded,
    NoParameters,
    embedded,
    molecule_seed,
)
from qm1b.conformers.isomers import ImpossibleStereo, isomer_of, leaves_open, refuse_impossible
from qm1b.conformers.rattle import rattled
from qm1b.conformers.torn import in_order_of, is_torn
from qm1b.rows.schema import Conformer, Drop
from qm1b.screening.geometries import Geometry, rounded
from qm1b.screening.screen import Candidate
from qm1b.settings import RunSettings

RDKIT_SHARE = 0.8
"""Part of the time limit after which RDKit is asked to stop by itself, before the process is
killed; the conformers of the chunks finished by then are kept."""

SECONDS_PER_CONFORMER = 0.1
"""Added to the time limit; an ordinary molecule needs a tenth of it."""


def time_limit(settings: RunSettings) -> float:
    """Seconds after which the process of a molecule is killed; 0 for never."""
    seconds = settings.embed_timeout
    return seconds + SECONDS_PER_CONFORMER * settings.conformers if seconds else 0.0


def embed(candidate: Candidate, settings: RunSettings) -> Embedded:
    """Up to `settings.conformers` conformers of a molecule, in this process.

    Positions are rounded to float32, the precision they are stored in, before anything is computed
    from them; conformers with coinciding atoms are not kept.
    """
    like = _like(candidate, settings)
    try:
        result, graph = _geometries(candidate, like, settings)
    except NoParameters as error:
        return Embedded(candidate.line, (), drop_of(candidate, "no_parameters", str(error)))
    except ImpossibleStereo as error:
        return Embedded(candidate.line, (), drop_of(candidate, "embed_failed", str(error)))
    conformers: list[Conformer] = []
    problem = ""
    for copy, conformer in enumerate(result.conformers, candidate.first):
        number = candidate.first + len(conformers)
        try:  # copies of one geometry: after a failed step another one is tried
            positions = _finished(conformer, settings, copy)
        except InvalidMolecule as error:
            problem = f"; {error}"
            continue
        moved = replace(conformer, conformer=number, positions=positions)
        conformers.append(_perceived(moved, graph))
    drop = None
    if len(conformers) < settings.conformers:
        reason = "fewer_conformers" if conformers else _without_any(candidate, settings, problem)
        reason = "embed_timeout" if result.timed_out else reason
        detail = f"{len(conformers)} of {settings.conformers} conformers{problem}"
        drop = drop_of(candidate, reason, detail)
    return replace(result, conformers=tuple(conformers), drop=drop)


def _like(candidate: Candidate, settings: RunSettings) -> Conformer:
    """What the conformers of a molecule have in common, with the given geometry if there is one."""
    given = candidate.geometry or Geometry(np.zeros(0, np.uint8), np.zeros((0, 3)))
    return Conformer(
        line=candidate.line,
        id=candidate.id,
        smiles=candidate.smiles,
        conformer=candidate.first,
        seed=molecule_seed(settings.seed, candidate.identity),
        embedding=GIVEN,
        relaxation=NOT_RELAXED,
        charge=candidate.charge,
        numbers=given.numbers,
        input_atom=given.input_atom,
        positions=given.positions,
    )


def _geometries(
    candidate: Candidate, like: Conformer, settings: RunSettings
) -> tuple[Embedded, Chem.Mol | None]:
    """Conformers before any displacement: those of RDKit, or copies of the given geometry.

    And the molecule with its atoms in their order, None if that is not known.
    """
    given = candidate.geometry
    if given is None:
        graph = _graph(candidate.smiles)
        if candidate.atoms:
            like = replace(like, input_atom=candidate.atoms.of_rows(graph))
        elements = np.array([atom.GetAtomicNum() for atom in graph.GetAtoms()])
        in_order = Chem.RenumberAtoms(graph, heavy_first(elements).tolist())
        return _embedded(graph, like, settings), in_order
    copies = Embedded(candidate.line, (like,) * settings.conformers)
    if given.graph is not None or not candidate.smiles:
        return copies, given.graph
    return copies, in_order_of(_graph(candidate.smiles), given.numbers, given.positions)


def _graph(smiles: str) -> Chem.Mol:
    """The molecule of a canonical SMILES, with all hydrogens."""
    bare = Chem.MolFromSmiles(smiles)
    if bare is None:
        raise RuntimeError("RDKit cannot read the SMILES that it wrote")
    return Chem.AddHs(bare)


def _embedded(graph: Chem.Mol, like: Conformer, settings: RunSettings) -> Embedded:
    """RDKit's conformers; of one stereoisomer, which the first one chooses, if asked for."""
    seconds, start = RDKIT_SHARE * time_limit(settings), time.monotonic()
    clock = Clock(seconds / 2)
    starved = False
    with rdBase.BlockLogs():
        refuse_impossible(graph, like.seed, clock)
        if settings.one_stereoisomer and leaves_open(graph):
            starved = embedded(graph, like, 1, seconds=seconds / 4).starved
            if graph.GetNumConformers():
                Chem.AssignStereochemistryFrom3D(graph, replaceExistingTags=False)
    left = max(1.0, seconds - (time.monotonic() - start)) if seconds else 0.0
    result = embedded(graph, like, settings.conformers, seconds=left, relax=settings.relax)
    return replace(result, starved=result.starved or clock.starved or starved)


def _perceived(conformer: Conformer, graph: Chem.Mol | None) -> Conformer:
    """With the stereo and the bonds of its positions.

    Without a graph although there is a SMILES, its bonds are not in the geometry.
    """
    numbers, positions, smiles = conformer.numbers, conformer.positions, conformer.smiles
    if graph is None:
        return replace(conformer, torn=bool(smiles) or is_torn(None, numbers, positions))
    with rdBase.BlockLogs():
        isomer = isomer_of(graph, positions, smiles)
    return replace(conformer, isomer_smiles=isomer, torn=is_torn(graph, numbers, positions))


def _finished(conformer: Conformer, settings: RunSettings, copy: int) -> Float[np.ndarray, "A 3"]:
    """Displaced, rounded and checked positions.

    Raises:
        InvalidMolecule: they cannot be computed.
    """
    from pyscf_ipu.molecule.molecule import Molecule

    numbers, positions, sigma = conformer.numbers, conformer.positions, settings.rattle_angstrom
    if sigma:
        moved = rattled(numbers, positions, sigma, seed=conformer.seed, copy=copy)
        if moved is None:
            raise InvalidMolecule("displaced atoms came too close in every try")
        positions = moved
    positions = rounded(positions)
    molecule = Molecule(numbers, positions, conformer.charge, smiles=conformer.smiles)
    molecule.check(settings.level.precision)
    return positions


def _without_any(candidate: Candidate, settings: RunSettings, problem: str) -> str:
    """The reason why no conformer was kept."""
    if problem and settings.rattle_angstrom:
        return "rattle_failed"
    return "invalid_geometry" if candidate.geometry is not None else "embed_failed"


def drop_of(candidate: Candidate, reason: str, detail: str) -> Drop:
    """A molecule, or a part of its conformers, that is left out."""
    return Drop(candidate.line, candidate.smiles, reason, detail=detail, id=candidate.id)
