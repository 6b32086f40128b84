"""Molecular graphs of SMILES, by RDKit."""

from rdkit import Chem

from qm1b.inputs.records import MAX_CHARACTERS
from qm1b.screening.atom_order import canonical_heavy
from qm1b.screening.limits import SHOWN, Dropped, Limits


def canonical(graph: Chem.Mol) -> tuple[str, list[int]]:
    """Canonical SMILES of a sanitised graph, without isotope labels and atom maps.

    Electronic energies do not depend on nuclear masses, and map numbers are bookkeeping. A centre
    that was stereogenic only because of an isotope loses its mark.

    Returns:
        The SMILES, and its heavy atoms by their numbers among those of the graph.
    """
    has_labels = any(atom.GetIsotope() or atom.GetAtomicNum() == 1 for atom in graph.GetAtoms())
    for atom in graph.GetAtoms():
        atom.SetIsotope(0)
        atom.SetAtomMapNum(0)
    if has_labels:  # stereochemistry is perceived again only if it may change: it takes time
        graph = Chem.AddHs(graph)
        Chem.AssignStereochemistry(graph, cleanIt=True, force=True)
    bare = Chem.RemoveHs(graph)
    return Chem.MolToSmiles(bare), canonical_heavy(bare)


def parsed(smiles: str, limits: Limits) -> tuple[Chem.Mol, Chem.Mol]:
    """The graph of a SMILES with every atom that was written, not sanitised, and the molecule.

    The molecule has no explicit hydrogens.

    Raises:
        Dropped: it cannot be read, or has unsupported elements, several fragments or too many AOs.
    """
    graph = bare(smiles)
    limits.check_atoms(graph)
    check_chemistry(graph)
    if "|" in smiles:  # extensions state double bonds, which only the whole parser perceives
        molecule = Chem.MolFromSmiles(smiles)
        if molecule is None:
            raise Dropped("unparsable", "not a valid molecule")
        return graph, molecule
    try:  # as `MolFromSmiles` does, now that the graph is known to be small
        molecule = Chem.RemoveHs(graph)
        Chem.AssignStereochemistry(molecule, cleanIt=True)
    except (RuntimeError, ValueError):
        raise Dropped("unparsable", "not a valid molecule") from None
    return graph, molecule


def check_chemistry(graph: Chem.Mol) -> None:
    """Valences and aromaticity of a graph that is not sanitised.

    Raises:
        Dropped: unparsable.
    """
    problems = Chem.DetectChemistryProblems(graph)
    if problems:
        raise Dropped("unparsable", problems[0].Message()[:SHOWN])


def bare(smiles: str) -> Chem.Mol:
    """The graph of a SMILES, not sanitised; raises Dropped if it cannot be read."""
    if not smiles:
        raise Dropped("empty", "no SMILES on this line")
    if len(smiles) > MAX_CHARACTERS:
        raise Dropped("too_long", f"more than {MAX_CHARACTERS} characters")
    if not smiles.isascii() or not smiles.isprintable():
        raise Dropped("unparsable", "holds bytes that are not SMILES text")
    parameters = Chem.SmilesParserParams()
    parameters.sanitize = False
    parameters.removeHs = False
    try:
        graph = Chem.MolFromSmiles(smiles, parameters)
    except RuntimeError as error:
        raise Dropped("unparsable", f"syntax: {str(error)[:SHOWN]}") from None
    if graph is None or graph.GetNumAtoms() == 0:
        raise Dropped("unparsable", "syntax error")
    return graph
