"""The molecules of `states`: torn and pressed diatomics, and polyatomic ones that are hard."""

from benchmarks import harness, molecules
from pyscf_ipu import Molecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.elements.spellings import SYMBOLS

Named = tuple[str, Molecule]

# Equilibrium lengths in Angstrom: K. P. Huber, G. Herzberg, Constants of Diatomic Molecules (1979).
DIATOMICS = {
    "H H": 0.741, "Li Li": 2.673, "Be Be": 2.45, "B B": 1.590, "C C": 1.243, "N N": 1.098,
    "O O": 1.208, "F F": 1.412, "Na Na": 3.079, "Si Si": 2.246, "P P": 1.893, "S S": 1.889,
    "Cl Cl": 1.988, "Li H": 1.596, "B H": 1.232, "N H": 1.036, "F H": 0.917, "Na H": 1.887,
    "Al H": 1.648, "Cl H": 1.275, "Li F": 1.564, "Li Cl": 2.021, "Na F": 1.926, "Na Cl": 2.361,
    "Be O": 1.331, "Mg O": 1.749, "B F": 1.263, "Al F": 1.654, "C O": 1.128, "Si O": 1.510,
    "C S": 1.535, "Si S": 1.929, "N F": 1.317, "P N": 1.491, "Cl F": 1.628,
    "He H +": 0.774, "N O +": 1.063, "C N -": 1.177, "O H -": 0.964,
}  # fmt: skip
STRETCHES = (0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0)

MULTIREFERENCE = (
    "[O-][O+]=O C1=CC=C1 O=C1C(=O)C(=O)C1=O N=O N=N O=NN=O O=[N+]([O-])[N+](=O)[O-] FOF FOOF "
    "C=C=C C1=CC=CC=C1 [C-]#[O+] C#CC#C O=C=C=C=O S=C=S N#CC#N"
).split()
IONS = (
    "[NH4+] [OH3+] [CH3-] [NH2-] CC(=O)[O-] [O-]C=O C[O-] [C-]#N [N-]=[N+]=[N-] [O-][N+](=O)[O-] "
    "C[NH3+] C[NH2+]C [F-] [Cl-] [Li+] [Na+] O=C([O-])[O-] [O-]S(=O)(=O)[O-] [BH4-] F[B-](F)(F)F"
).split()
HYDRIDES = "[LiH] [BeH2] B C N O F [NaH] [MgH2] [AlH3] [SiH4] P S Cl BB NN OO PP SS".split()
HYPERVALENT = (
    "FS(F)(F)(F)(F)F FP(F)(F)(F)F O=S=O O=S(=O)=O OS(=O)(=O)O OCl(=O)(=O)=O FS(F)(F)F "
    "CS(C)=O CS(C)(=O)=O OP(O)(O)=O CP(C)(C)=O F[Si](F)(F)F ClS(Cl)=O"
).split()


def diatomics() -> list[Named]:
    """Every pair at eight lengths."""
    found = []
    for name, angstrom in DIATOMICS.items():
        first, second, *sign = name.split()
        charge = {"+": 1, "-": -1}[sign[0]] if sign else 0
        numbers = [SYMBOLS.index(first), SYMBOLS.index(second)]
        for stretch in STRETCHES:
            far = stretch * angstrom / BOHR_TO_ANGSTROM
            mol = Molecule(numbers, [[0, 0, 0], [0, 0, far]], charge)
            found.append((f"{name.replace(' ', '')} x {stretch}", mol))
    return found


def everything(limit: int | None = None) -> list[Named]:
    """All molecules, or `limit` of them, evenly."""
    smiles = [*MULTIREFERENCE, *IONS, *HYDRIDES, *HYPERVALENT, *molecules.SMALL]
    smiles += molecules.smiles_of(molecules.QM9, 20)
    embedded = molecules.embed(dict.fromkeys(smiles))
    found = diatomics() + [(str(mol.smiles), mol) for mol in embedded]
    return harness.evenly(found, limit)
