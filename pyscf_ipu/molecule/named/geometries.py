"""Molecules with a name, so that the first `nanodft` command needs no file and no network.

Geometries in Angstrom.  Sources:

* diatomics: equilibrium distances of K. P. Huber, G. Herzberg, Constants of Diatomic Molecules
  (1979);
* water: A. G. Csaszar et al., J. Chem. Phys. 122, 214305 (2005), doi:10.1063/1.1924506;
* benzene: J. Gauss, J. F. Stanton, J. Phys. Chem. A 104, 2865 (2000), a regular hexagon;
* methane: a regular tetrahedron with C-H bonds of 1.087 Angstrom;
* the others: not relaxed conformers of RDKit, `Molecule.from_smiles(smiles, seed=0)`.
"""

from collections.abc import Mapping

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.molecule.files.xyz import Unreadable, frame_of
from pyscf_ipu.molecule.molecule import Molecule

GEOMETRIES: Mapping[str, str] = {
    "hydrogen": "H 0 0 0; H 0 0 0.7414",
    "lithium hydride": "Li 0 0 0; H 0 0 1.5957",
    "nitrogen": "N 0 0 0; N 0 0 1.0977",
    "carbon monoxide": "C 0 0 0; O 0 0 1.1283",
    "hydrogen fluoride": "H 0 0 0; F 0 0 0.9168",
    "hydrogen chloride": "H 0 0 0; Cl 0 0 1.2746",
    "water": "O 0 0 0; H 0 0.7572 0.5865; H 0 -0.7572 0.5865",
    "methane": (
        "C 0 0 0; H 0.6276 0.6276 0.6276; H 0.6276 -0.6276 -0.6276; "
        "H -0.6276 0.6276 -0.6276; H -0.6276 -0.6276 0.6276"
    ),
    "benzene": (
        "C 1.3914 0.0000 0; C 0.6957 1.2050 0; C -0.6957 1.2050 0; "
        "C -1.3914 0.0000 0; C -0.6957 -1.2050 0; C 0.6957 -1.2050 0; "
        "H 2.4716 0.0000 0; H 1.2358 2.1405 0; H -1.2358 2.1405 0; "
        "H -2.4716 0.0000 0; H -1.2358 -2.1405 0; H 1.2358 -2.1405 0"
    ),
    "ammonia": (
        "N 0.0185 -0.0025 0.2437; H 0.9925 -0.1289 -0.0853; H -0.5986 -0.7704 -0.0792; "
        "H -0.4123 0.9018 -0.0792"
    ),
    "formaldehyde": (
        "C -0.0230 0.0006 0.0037; O 1.1569 -0.2053 -0.1850; H -0.7247 -0.8071 0.1339; "
        "H -0.4092 1.0117 0.0473"
    ),
    "ethylene": (
        "C 0.6738 0.0470 0.0995; C -0.6363 -0.0271 -0.0941; H 1.1417 1.0251 0.1580; "
        "H 1.2188 -0.8875 0.1907; H -1.2757 0.8543 -0.1988; H -1.1223 -1.0119 -0.1553"
    ),
    "acetylene": (
        "C -0.6064 0.0849 -0.0255; C 0.6041 -0.0855 0.0267; H -1.6591 0.2197 -0.0703; "
        "H 1.6614 -0.2191 0.0690"
    ),
    "hydrogen cyanide": "C -0.0320 0.0179 0; N 0.9733 -0.5584 0; H -0.9413 0.5404 0",
    "methanol": (
        "C -0.3512 -0.0040 -0.0166; O 0.9596 -0.3767 -0.2602; H -0.5961 0.0589 1.0563; "
        "H -0.9922 -0.8029 -0.4639; H -0.6528 0.9390 -0.4919; H 1.6327 0.1857 0.1765"
    ),
    "ethanol": (
        "C 0.8967 -0.0768 -0.0151; C -0.5765 -0.3513 0.0599; O -1.3162 0.8114 0.2047; "
        "H 1.2724 0.1453 1.0130; H 1.0477 0.8226 -0.6255; H 1.4477 -0.9655 -0.3449; "
        "H -0.7995 -0.9565 0.9744; H -0.8595 -0.9430 -0.8224; H -1.1128 1.5137 -0.4442"
    ),
    "formamide": (
        "N -0.7359 -0.0785 -0.0156; C 0.6978 0.0025 -0.0171; O 1.1779 1.0873 0.4286; "
        "H -1.2558 0.3159 -0.8298; H -1.2020 -0.5307 0.8035; H 1.3180 -0.7965 -0.3696"
    ),
    "acetic acid": (
        "C -0.9884 -0.0840 0.0187; C 0.4613 0.3209 -0.0211; O 0.8135 1.5286 -0.0056; "
        "O 1.3704 -0.7326 -0.0756; H -1.5618 0.8209 -0.1871; H -1.2545 -0.4201 1.0461; "
        "H -1.2006 -0.9243 -0.6714; H 2.3602 -0.5095 -0.1040"
    ),
    # Moved along x by 0.01: one coordinate had the digits of a unit conversion.
    "pyridine": (
        "C -0.1665 1.1502 0.1700; C -1.2170 0.2663 0.0330; C -1.0245 -1.0976 -0.1687; "
        "N 0.2443 -1.5436 -0.2282; C 1.3082 -0.7313 -0.1017; C 1.1276 0.6225 0.0986; "
        "H -0.3536 2.1962 0.3245; H -2.2148 0.7028 0.0925; H -1.8797 -1.7809 -0.2749; "
        "H 2.3177 -1.1016 -0.1513; H 1.9683 1.3170 0.2063"
    ),
}
"""Name -> "element x y z; ..." in Angstrom."""


def molecule_from_text(text: str, charge: int = 0) -> Molecule:
    """A molecule by name, or from "O 0 0 0; H 0 0 1; H 0 1 0" with positions in Angstrom.

    Raises:
        InvalidMolecule: the text is neither a name of GEOMETRIES nor a geometry; the message names
            the part that cannot be read.
    """
    name = plain_name(text)
    rows = [row for row in GEOMETRIES.get(name, text).split(";") if row.strip()]
    wrong = [row for row in rows if len(row.split()) != 4]
    if wrong or not rows:
        raise InvalidMolecule(_unknown(text, " ".join("".join(wrong[:1]).split())))
    try:
        frame = frame_of("", rows)
    except Unreadable as error:
        raise InvalidMolecule(_unknown(text, " ".join(rows[error.atom].split()))) from error
    label = name if name in GEOMETRIES else ""
    return Molecule(frame.numbers, frame.positions_angstrom / BOHR_TO_ANGSTROM, charge, name=label)


def plain_name(text: str) -> str:
    """A name as GEOMETRIES spells it: small letters, with blanks for hyphens and underscores."""
    return " ".join(text.lower().replace("_", " ").replace("-", " ").split())


def _unknown(text: str, part: str) -> str:
    names = ", ".join(sorted(GEOMETRIES))
    where = f"cannot read {part!r} in {text!r}" if ";" in text else f"no molecule {text!r}"
    return (
        f'{where}: give a geometry in Angstrom such as "O 0 0 0; H 0 0 1; H 0 1 0", or one of the '
        f"names {names}"
    )
