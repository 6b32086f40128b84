"""The conformers of one molecule, by RDKit."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Integer

from pyscf_ipu.base.errors import InvalidMolecule
from qm1b.conformers.embedding import (
    GIVEN,
    NOT_RELAXED,
    Embeddings,
    NoParameters,
    embeddings,
    molecule_seed,
)
from qm1b.conformers.rattle import rattled
from qm1b.rows.schema import Conformer, Drop
from qm1b.screening.geometries import rounded
from qm1b.screening.screen import Candidate
from qm1b.settings import RunSettings

RDKIT_SHARE = 0.8
"""Part of the time limit after which RDKit is asked to stop by itself, before the process is
killed; the conformers of the chunks finished by then are kept."""

SECONDS_PER_CONFORMER = 0.1
"""Added to the time limit; an ordinary molecule needs a tenth of it."""


@dataclass(frozen=True)
class Embedded:
    """What became of one candidate: its conformers, and why there are fewer than asked for."""

    line: int
    conformers: tuple[Conformer, ...]
    drop: Drop | None = None
    starved: bool = False
    """Whether it might have been otherwise with the processor to itself; see `Embeddings`."""


def time_limit(settings: RunSettings) -> float:
    """Seconds after which the process of a molecule is killed; 0 for never."""
    seconds = settings.embed_timeout
    return seconds + SECONDS_PER_CONFORMER * settings.conformers if seconds else 0.0


def embed(candidate: Candidate, settings: RunSettings) -> Embedded:
    """Up to `settings.conformers` conformers of a molecule, in this process.

    Positions are rounded to float32, the precision they are stored in, before anything is computed
    from them; conformers with coinciding atoms are not kept.
    """
    seed = molecule_seed(settings.seed, candidate.identity)
    try:
        found, places = _geometries(candidate, settings, seed)
    except NoParameters as error:
        return Embedded(candidate.line, (), drop_of(candidate, "no_parameters", str(error)))
    kept: list[Conformer] = []
    problem = ""
    for copy, (xyz, embedding, relaxation) in enumerate(
        zip(found.positions, found.embedding, found.relaxation, strict=True), candidate.first
    ):
        number = candidate.first + len(kept)
        try:  # copies of one geometry: after a failed step another one is tried
            positions = _finished(
                found.numbers, xyz, candidate, settings=settings, seed=seed, copy=copy
            )
        except InvalidMolecule as error:
            problem = f"; {error}"
            continue
        kept.append(
            Conformer(
                line=candidate.line,
                smiles=candidate.smiles,
                conformer=number,
                seed=seed,
                charge=candidate.charge,
                numbers=found.numbers.astype(np.uint8),
                positions=positions,
                embedding=embedding,
                relaxation=relaxation,
                id=candidate.id,
                input_atom=places,
            )
        )
    drop = None
    if len(kept) < settings.conformers:
        reason = "fewer_conformers" if kept else _without_any(candidate, settings, problem)
        reason = "embed_timeout" if found.timed_out else reason
        drop = drop_of(
            candidate, reason, f"{len(kept)} of {settings.conformers} conformers{problem}"
        )
    return Embedded(candidate.line, tuple(kept), drop, starved=found.starved)


def _geometries(
    candidate: Candidate, settings: RunSettings, seed: int
) -> tuple[Embeddings, tuple[int, ...]]:
    """Geometries before any displacement, and where their atoms stand in the input.

    They are those of RDKit, or copies of the one that was given.
    """
    from rdkit import Chem

    given = candidate.geometry
    if given is not None:
        copies = np.repeat(given.positions[None], settings.conformers, axis=0)
        how, relaxation = ((name,) * settings.conformers for name in (GIVEN, NOT_RELAXED))
        found = Embeddings(given.numbers.astype(np.int64), copies, how, relaxation=relaxation)
        return found, given.input_atom
    bare = Chem.MolFromSmiles(candidate.smiles)
    if bare is None:
        raise RuntimeError("RDKit cannot read the SMILES that it wrote")
    graph = Chem.AddHs(bare)
    seconds = RDKIT_SHARE * time_limit(settings)
    found = embeddings(graph, settings.conformers, seed, seconds=seconds, relax=settings.relax)
    return found, candidate.atoms.of_rows(graph) if candidate.atoms else ()


def _finished(
    numbers: Integer[np.ndarray, " A"],
    positions: Float[np.ndarray, "A 3"],
    candidate: Candidate,
    settings: RunSettings,
    seed: int,
    copy: int,
) -> Float[np.ndarray, "A 3"]:
    """Displaced, rounded and checked positions.

    Raises:
        InvalidMolecule: they cannot be computed.
    """
    from pyscf_ipu.molecule.molecule import Molecule

    if settings.rattle_angstrom:
        moved = rattled(numbers, positions, settings.rattle_angstrom, seed=seed, copy=copy)
        if moved is None:
            raise InvalidMolecule("displaced atoms came too close in every try")
        positions = moved
    positions = rounded(positions)
    molecule = Molecule(numbers, positions, candidate.charge, smiles=candidate.smiles)
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
