"""The molecules of the benchmarks: one seeded conformer for each line of the bundled files."""

from collections.abc import Iterable
from pathlib import Path

from benchmarks.harness import HERE
from pyscf_ipu import Molecule
from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.shapes.shape import count_ao

GDB = HERE / "data" / "gdb11_mixed_200.smi"
"""5 to 8 heavy atoms in turn."""

QM9 = HERE / "data" / "qm9_9heavy_100.smi"
"""9 heavy atoms."""

# One heavy atom, two heavy atoms, two with a chlorine: three shapes, hence three programs a level.
SMALL = (
    "C N O F [NH4+] [OH3+] "
    "CC C=C C#C CO C=O CN C=N C#N CF N#N [C-]#[O+] OO NN OF NF FF NO N=O N=N C[NH3+] C=[NH2+] "
    "CCl ClF OCl NCl [NH3+]Cl"
).split()
# For the larger basis sets: all of one shape, and two chlorine compounds of another.
FEW = "CO C=O CN C#N CF C[NH3+] C=C NO".split()
CHLORINE = ["CCl", "OCl"]
# Ten elements, and ions of either charge: four shapes.
ELEMENTS = "CO CF CN C#N CCl CS CP C[SiH3] C[S-] N [NH4+] [OH-] Br".split()
# 4 to 9 heavy atoms, small ones first: ions of either charge, S, Cl, Br.
FRAGMENTS = "CC(=O)[O-] c1ccsc1 BrCC(N)=O NC(N)=[NH2+] CC(=O)NC Clc1ccncc1N Cc1cc(O)ccc1N".split()
# 16 heavy atoms: chains, amino acids, esters, condensed rings.
SIXTEEN = (
    "CC(C)Cc1ccc(cc1)C(C)C(=O)OC CNC(Cc1c[nH]c2ccccc12)C(=O)O CCCNC(C)C(=O)Nc1ccccc1C "
    "O=C1c2ccccc2C(=O)c2ccccc12 OC(=O)C(c1ccccc1)C1CCCCN1 c1cc2ccc3cccc4ccc(c1)c2c34"
).split()


def smiles_of(path: Path, limit: int | None = None) -> list[str]:
    """First column of a SMILES file, at most `limit` lines."""
    lines = [line.split()[0] for line in path.read_text().splitlines() if line.strip()]
    return lines[:limit]


def n_ao(smiles: str) -> int:
    """AOs in STO-3G of the molecule that a SMILES means."""
    from rdkit import Chem  # not at the top: the memory of workers is measured

    atoms = Chem.AddHs(Chem.MolFromSmiles(smiles)).GetAtoms()
    return count_ao([atom.GetAtomicNum() for atom in atoms], "sto-3g", False)


def embed(smiles: Iterable[str], seed: int = 0) -> list[Molecule]:
    """A conformer of each SMILES; those that RDKit cannot embed are named and left out."""
    found = []
    for text in smiles:
        try:
            found.append(Molecule.from_smiles(text, seed=seed))
        except InvalidMolecule as error:
            print(f"left out: {error}")
    return found


def mixed(limit: int, n_gdb: int = 120) -> list[Molecule]:
    """Molecules of 5 to 9 heavy atoms; any `limit` has the same shares of GDB-11 and QM9."""
    gdb, qm9 = smiles_of(GDB, n_gdb), smiles_of(QM9)
    share = min(limit, len(gdb) + len(qm9)) / (len(gdb) + len(qm9))
    return embed(gdb[: round(share * len(gdb))] + qm9[: round(share * len(qm9))])
