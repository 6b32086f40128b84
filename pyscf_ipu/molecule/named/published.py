"""Molecules by the names that the original PySCF-IPU has for them.

`c_5` is five carbons in a row, one Angstrom apart: its benchmark of time and memory, no molecule of
nature. `c20` is the smallest fullerene, here at a minimum of B3LYP/STO-3G by `pyscf_ipu.optimize`
from a dodecahedron that was pushed out of its symmetry, whose orbitals are degenerate. Amino acids
have three letters, and the protonation states that force fields name; all are neutral here, with
RDKit's geometry, while the original took solvated ones from a file in the network.
"""

import re
from collections.abc import Mapping

from pyscf_ipu.base.errors import InvalidMolecule

MOST_CARBONS = 100

C20 = (
    "C -1.1957 -1.1831 -1.1332; C -1.2083 -1.2309 1.1814; C -1.2085 1.2307 -1.1814; "
    "C -1.1958 1.1830 1.1332; C 1.1957 -1.1830 -1.1332; C 1.2086 -1.2307 1.1814; "
    "C 1.2083 1.2309 -1.1813; C 1.1956 1.1831 1.1332; C 0.0000 -0.7217 -1.8569; "
    "C -0.7725 -1.9707 0.0337; C -1.9930 -0.0015 -0.7135; C 0.0001 -0.7488 1.8770; "
    "C -0.7729 1.9706 -0.0337; C -1.9928 0.0012 0.7134; C -0.0001 0.7488 -1.8770; "
    "C 0.7728 -1.9705 0.0337; C 1.9929 -0.0012 -0.7134; C 0.0000 0.7217 1.8569; "
    "C 0.7724 1.9706 -0.0337; C 1.9931 0.0015 0.7134"
)
"""In Angstrom; -752.105698 Hartree at B3LYP/STO-3G, grid level 0, bonds of 1.41 to 1.54."""

AMINO_ACIDS: Mapping[str, str] = {
    "ala": "C[C@H](N)C(=O)O",
    "arg": "N=C(N)NCCC[C@H](N)C(=O)O",
    "ash": "N[C@@H](CC(=O)O)C(=O)O",
    "asn": "NC(=O)C[C@H](N)C(=O)O",
    "asp": "N[C@@H](CC(=O)O)C(=O)O",
    "cys": "N[C@@H](CS)C(=O)O",
    "cyx": "N[C@@H](CSSC[C@H](N)C(=O)O)C(=O)O",
    "glh": "N[C@@H](CCC(=O)O)C(=O)O",
    "gln": "NC(=O)CC[C@H](N)C(=O)O",
    "glu": "N[C@@H](CCC(=O)O)C(=O)O",
    "gly": "NCC(=O)O",
    "hid": "N[C@@H](Cc1cnc[nH]1)C(=O)O",
    "hie": "N[C@@H](Cc1c[nH]cn1)C(=O)O",
    "his": "N[C@@H](Cc1c[nH]cn1)C(=O)O",
    "ile": "CC[C@H](C)[C@H](N)C(=O)O",
    "leu": "CC(C)C[C@H](N)C(=O)O",
    "lyn": "NCCCC[C@H](N)C(=O)O",
    "lys": "NCCCC[C@H](N)C(=O)O",
    "met": "CSCC[C@H](N)C(=O)O",
    "phe": "N[C@@H](Cc1ccccc1)C(=O)O",
    "pro": "O=C(O)[C@@H]1CCCN1",
    "ser": "N[C@@H](CO)C(=O)O",
    "thr": "C[C@@H](O)[C@H](N)C(=O)O",
    "trp": "N[C@@H](Cc1c[nH]c2ccccc12)C(=O)O",
    "tyr": "N[C@@H](Cc1ccc(O)cc1)C(=O)O",
    "val": "CC(C)[C@H](N)C(=O)O",
}
"""SMILES by three letters; CYX is cystine, two cysteines with a bridge of sulphur."""


def geometry(name: str) -> str | None:
    """The geometry of `c_5` and `c20` as "C 0 0 0; ..." in Angstrom; None for other names.

    Raises:
        InvalidMolecule: a row of no carbons, or of more than MOST_CARBONS.
    """
    plain = name.strip().lower()
    if plain == "c20":
        return C20
    match = re.fullmatch(r"c_(\d+)", plain)
    if not match:
        return None
    n = int(match[1])
    if not 1 <= n <= MOST_CARBONS:
        raise InvalidMolecule(f"{name}: a row of carbons has 1 to {MOST_CARBONS} of them")
    return "; ".join(f"C 0 0 {i}" for i in range(n))


def smiles(name: str) -> str | None:
    """The SMILES of an amino acid by its three letters; None for other names."""
    return AMINO_ACIDS.get(name.strip().lower())
