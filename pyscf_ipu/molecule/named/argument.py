"""What the argument MOLECULE means: a file, a geometry, a name or a SMILES, in that order."""

import re
from dataclasses import replace
from pathlib import Path

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.molecule.named import published
from pyscf_ipu.molecule.named.geometries import GEOMETRIES, molecule_from_text, plain_name
from pyscf_ipu.molecule.parts import is_sdf

XYZ = (".xyz", ".extxyz")
ATOM = re.compile(r"\s*[A-Za-z]{1,2}(\s+[-+.\deE]+){3}\s*(;|$)")
"""The beginning of a geometry in text."""


def find_molecule(
    text: str, charge: int | None = None, seed: int = 0, *, multiplicity: int | None = None
) -> Molecule:
    """The molecule that a command's argument names; nothing is looked up in a network.

    Args:
        text: path of an XYZ or SDF file, a geometry as "O 0 0 0; H 0 0 1; ..." in Angstrom, a name
            such as benzene, ALA, c20 or c_5, or a SMILES.
        charge: in units of e; None for that of the file or the SMILES, and 0 for a name.
        seed: of RDKit, for the geometry of a SMILES.
        multiplicity: 2S + 1; None for that of the file or the SMILES, or 1.

    Raises:
        InvalidMolecule: it is none of these; the file cannot be read, or states another charge.
    """
    path = Path(text)
    if _is_file(path):
        if is_sdf(path):
            molecule = _with_charge(Molecule.from_sdf(path), charge, text)
            return _with_multiplicity(molecule, multiplicity)
        return Molecule.from_xyz(path, charge, multiplicity=multiplicity)
    if is_sdf(path) or path.suffix.lower() in XYZ:
        raise InvalidMolecule(f"there is no file {text}: check the path")
    geometry = published.geometry(text)
    if geometry is not None:
        return _with_multiplicity(molecule_from_text(geometry, charge or 0), multiplicity)
    if ATOM.match(text) or plain_name(text) in GEOMETRIES:
        return _with_multiplicity(molecule_from_text(text, charge or 0), multiplicity)
    if len(text.split()) > 1:  # RDKit would take what stands behind a blank for a name
        raise _not_understood(text)
    smiles = published.smiles(text)
    try:
        molecule = Molecule.from_smiles(smiles or text, seed, multiplicity=multiplicity)
    except InvalidMolecule as error:
        if "cannot be read" not in str(error):
            raise
        raise _not_understood(text) from error
    return _with_charge(molecule, charge, text)


def _not_understood(text: str) -> InvalidMolecule:
    return InvalidMolecule(
        f"{text!r} is no file, no listed name, no SMILES and no geometry: give the path of an XYZ "
        'or SDF file, a geometry in Angstrom such as "O 0 0 0; H 0 0 1; H 0 1 0", a SMILES such as '
        "CCO, an amino acid as ALA, c20, a row of carbons as c_5, or one of the names "
        f"{', '.join(sorted(GEOMETRIES))}"
    )


def _is_file(path: Path) -> bool:
    """Whether there is such a file; a long SMILES is no file, whatever the system says of it."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _with_multiplicity(molecule: Molecule, multiplicity: int | None) -> Molecule:
    return molecule if multiplicity is None else replace(molecule, multiplicity=multiplicity)


def _with_charge(molecule: Molecule, charge: int | None, text: str) -> Molecule:
    if charge is not None and charge != molecule.charge:
        raise InvalidMolecule(
            f"{text} has charge {molecule.charge:+d}, which contradicts --charge {charge}: leave "
            "one out"
        )
    return molecule
