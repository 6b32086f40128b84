"""The conformers of one molecule, by RDKit."""

import time
from dataclasses import replace
from itertools import product

import numpy as np
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
from qm1b.conformers.isomers import isomer_of, refuse_impossible
from qm1b.conformers.rattle import rattled
from qm1b.conformers.torn import elements, in_order_of, is_in_parts, is_torn
from qm1b.rows.schema import Conformer, Drop
from qm1b.screening.geometries import Geometry, rounded
from qm1b.screening.limits import CLOSED
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

    Raises:
        ImpossibleStereo: no geometry has the stereo of the molecule.
    """
    try:
        result, graph = _geometries(candidate, settings)
    except NoParameters as error:
        return Embedded(candidate.line, (), drop_of(candidate, "no_parameters", str(error)))
    conformers: list[Conformer] = []
    problem = ""
    for copy, conformer in enumerate(result.conformers, candidate.first):
        try:  # copies of one geometry: after a failed step another one is tried
            finished = _finished(conformer, graph, settings, copy=copy)
        except InvalidMolecule as error:
            problem = f"; {error}"
            continue
        conformers.append(finished)
    drop = None
    if len(conformers) < settings.conformers:
        reason = "fewer_conformers" if conformers else _without_any(candidate, settings, problem)
        reason = "embed_timeout" if result.timed_out else reason
        detail = f"{len(conformers)} of {settings.conformers} conformers{problem}"
        drop = drop_of(candidate, reason, detail)
    states = product(candidate.multiplicities, conformers)
    rows = (
        replace(conformer, conformer=number, multiplicity=multiplicity)
        for number, (multiplicity, conformer) in enumerate(states, candidate.first)
    )
    return replace(result, conformers=tuple(rows), drop=drop)


def embed_or_drop(candidate: Candidate, settings: RunSettings) -> Embedded:
    """Embed a molecule; what RDKit raises, or says of impossible stereo, becomes a drop."""
    try:
        return embed(candidate, settings)
    except (RuntimeError, ValueError) as error:
        drop = drop_of(candidate, "embed_failed", str(error)[:200])
        return Embedded(candidate.line, (), drop)


def _geometries(candidate: Candidate, settings: RunSettings) -> tuple[Embedded, Chem.Mol | None]:
    """Conformers before any displacement: those of RDKit, or copies of the given geometry.

    And the molecule with its atoms in their order; None if it is not known, or has other bonds.
    """
    given = candidate.geometry or Geometry(np.zeros(0, np.uint8), np.zeros((0, 3)))
    like = Conformer(
        line=candidate.line,
        id=candidate.id,
        smiles=candidate.smiles,
        conformer=candidate.first,
        seed=molecule_seed(settings.seed, candidate.identity),
        embedding=GIVEN,
        relaxation=NOT_RELAXED,
        charge=candidate.charge,
        multiplicity=candidate.multiplicities[0],
        open_shell=candidate.multiplicities != CLOSED,
        numbers=given.numbers,
        input_atom=given.input_atom,
        positions=given.positions,
    )
    bare = Chem.MolFromSmiles(candidate.smiles)
    if bare is None:
        raise RuntimeError("RDKit cannot read the SMILES that it wrote")
    graph = Chem.AddHs(bare)
    if candidate.geometry is not None:
        copies = Embedded(candidate.line, (like,) * settings.conformers)
        known = in_order_of(graph, like.numbers, like.positions) if candidate.smiles else None
        return copies, known
    if candidate.atoms:
        like = replace(like, input_atom=candidate.atoms.of_rows(graph))
    in_order = Chem.RenumberAtoms(graph, heavy_first(elements(graph)).tolist())
    return _embedded(graph, like, settings), in_order


def _embedded(graph: Chem.Mol, like: Conformer, settings: RunSettings) -> Embedded:
    """RDKit's conformers; of one stereoisomer, which the first one chooses, if asked for."""
    seconds, start = RDKIT_SHARE * time_limit(settings), time.monotonic()
    clock, starved = Clock(seconds / 2), False
    with rdBase.BlockLogs():
        refuse_impossible(graph, like.seed, clock)
        if settings.one_stereoisomer:
            starved = embedded(graph, like, 1, seconds=seconds / 4).starved
            if graph.GetNumConformers():
                Chem.AssignStereochemistryFrom3D(graph, replaceExistingTags=False)
                Chem.AssignStereochemistry(graph, cleanIt=True, force=True)
    left = max(1.0, seconds - (time.monotonic() - start)) if seconds else 0.0
    result = embedded(graph, like, settings.conformers, seconds=left, relax=settings.relax)
    return replace(result, starved=result.starved or clock.starved or starved)


def _finished(
    conformer: Conformer, graph: Chem.Mol | None, settings: RunSettings, *, copy: int
) -> Conformer:
    """With displaced, rounded and checked positions, and their stereo and bonds.

    Raises:
        InvalidMolecule: they cannot be computed.
    """
    numbers, positions, sigma = conformer.numbers, conformer.positions, settings.rattle_angstrom
    if sigma:
        moved = rattled(numbers, positions, sigma, seed=conformer.seed, copy=copy)
        if moved is None:
            raise InvalidMolecule("displaced atoms came too close in every try")
        positions = moved
    positions = rounded(positions)
    molecule = replace(conformer, positions=positions).molecule()
    molecule.check(settings.level.precision, open_shell=conformer.open_shell)
    if graph is None:  # if the input has a SMILES, the geometry has other bonds
        torn = bool(conformer.smiles) or is_in_parts(numbers, positions)
        return replace(conformer, positions=positions, torn=torn)
    isomer, torn = isomer_of(graph, positions, conformer.smiles), is_torn(graph, numbers, positions)
    return replace(conformer, positions=positions, isomer_smiles=isomer, torn=torn)


def _without_any(candidate: Candidate, settings: RunSettings, problem: str) -> str:
    """The reason why no conformer was kept."""
    if problem and settings.rattle_angstrom:
        return "rattle_failed"
    return "invalid_geometry" if candidate.geometry is not None else "embed_failed"


def drop_of(candidate: Candidate, reason: str, detail: str) -> Drop:
    """A molecule, or a part of its conformers, that is left out."""
    return Drop(candidate.line, candidate.smiles, reason, detail=detail, id=candidate.id)
