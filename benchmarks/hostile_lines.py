"""Hostile records, from a seed: what a file of SMILES, an SDF or an XYZ may hold and should not."""

from __future__ import annotations

import csv
import functools
import random
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
PATHOLOGICAL = HERE.parent / "tests" / "data" / "pathological_smiles.csv"
SAMPLE = HERE.parent / "qm1b" / "data" / "gdb11_sample.smi"

ELEMENTS = (
    "Li Na K Cs Be Mg Ca Al Ga Sn Pb Bi Sc Ti Fe Co Ni Cu Zn Ru Pd Pt Au Hg Ce U Og Xx".split()
)

# fmt: off
FIXED = [
    "", " ", "\t", "\t\t1", "\x00", "C\x00C", "\ufeffC", "\u200bC", "\u202eCCO", "C\xa0C", "⌬",
    "💥", "*", "*C*", "[*]", "[1*]C", "C~C", "[#6]", "[C,N]", "[$(C)]", "C$C", "C->[Fe]", "N->B",
    "[D]", "CC>>CO", "CCO>[Na+]>CC=O", ">>", ">", "C.C", ".", "..", "C..C", "[Na+].[Cl-]", "O.O.O",
    "C |^1:0|", "C |", "C ||", "C |^9:99|", "CC |$_AP1;;$|", "*C |$R1;$|", "C |(0,0,0)|", "C |c:|",
    "CC |Sg:n:0:1:ht|", "C |^1:0,1,2|", "CC |atomProp:0.a.b|", "C |$", "[CH3]", "[CH2]", "[O]",
    "O=[O]", "[H]", "[H+]", "[H-]", "[H][H]", "[2H][2H]", "[3H]O", "[D]O[D]", "[C+150]", "[C-151]",
    "[C+++++++]", "[O-9]", "[N+99999999999]", "[NH4+]", "[He+2]", "[Li+]", "[999C]", "[13CH4]",
    "[0C]", "[C:1]", "[C:99999999999]", "[CH99]", "[CH4:]", "[]", "[", "]", "[C", "C1", "C1C",
    "C11", "C%", "C%1", "C%99", "C%(100)C%(100)", "C0CC0", "C12CC12", "C1=C=C=1", "1", "()", "(C)",
    "C()", "C(", "C)", "C((C))", "C(C", "C=", "=C", "C==C", "C=#C", "C//C", "F/C=C", "\\", "c",
    "cc", "c1ccc1", "c1cccc1", "n1cccc1", "c1ccccc1C2", "C:C", "[nH]1cccc1", "o1cccc1", "b1ccccc1",
    "C[C@@@H]F", "[C@TH3](F)(C)(N)O", "[C@SP4](C)(F)(N)O", "[C@H2](F)C", "N[C@](Br)(O)C",
    "C[S@](=O)N", "InChI=1S/CH4/h1H4", "methane", "None", "nan", "NULL", "0", "-1", "1e5", "=1+1",
    "@SUM(A1)", "#REF!", "'; DROP TABLE smiles; --", "<script>C</script>", "%s%n", "{0}",
    "../../etc/passwd", "$(reboot)", "C##################################################",
    "C==================================================", "C12C3C4C1C5C2C3C45", "C1=CC#CC=C1",
    "C12=C3C1=C23", "C1CC/C=C/C1", "C1C/C=C/C1", "C1=C2CC12",
    "C |" + "^1:0," * 300 + "|", *(900 * c for c in "[]\\'\"%"),
    # Small enough to pass and hard to embed: centres that cannot be.
    "C[C@H]1[C@@H](O)O[C@@H]2O[C@]3(C)CC[C@H]4[C@H](C)CC[C@@H]1[C@@]24OO3",
]
# fmt: on


def hostile_lines(random_: random.Random, count: int) -> list[bytes]:
    """At least `count` lines: the known bad ones, then random ones of every kind."""
    with open(PATHOLOGICAL, newline="") as stream:
        rows = csv.DictReader(line for line in stream if not line.startswith("#"))
        known = [row["smiles"] for row in rows]
    texts = [*FIXED, *known]
    makers = [_mutated, _mutated, _mutated, *_MAKERS]
    lines = [text.encode() for text in texts]
    while len(lines) < count:
        made = random_.choice(makers)(random_)
        lines.append(made if isinstance(made, bytes) else made.encode(errors="replace"))
    random_.shuffle(lines)
    return [line.replace(b"\n", b" ") for line in lines]


def damaged_blocks(random_: random.Random, count: int) -> list[str]:
    """Entries of an SDF: whole, damaged, and no entries at all."""
    from rdkit import Chem, RDLogger
    from rdkit.Chem import rdDistGeom

    RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined]
    made = ["", "\n", "M  END\n", "\n\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n"]
    while len(made) < count:
        graph = Chem.AddHs(Chem.MolFromSmiles(random_.choice(_sample())))
        if rdDistGeom.EmbedMolecule(graph, randomSeed=len(made)):
            continue
        if random_.random() < 0.2:
            graph = Chem.RemoveHs(graph)
        block = Chem.MolToMolBlock(graph, forceV3000=random_.random() < 0.3)
        block += random_.choice(
            ["", "> <charge>\n0\n\n", "> <charge>\n-3\n\n", "> <charge>\nx\n\n"]
        )
        made.append(_damaged(random_, block) if random_.random() < 0.7 else block)
    return made


def damaged_frames(random_: random.Random, count: int) -> list[str]:
    """Frames of an XYZ file: whole, damaged, and no frames at all."""
    comments = [
        *("", "charge=0", "charge=-1", "charge=1.5", "charge=1e400", "smiles=O", "smiles=CCO"),
        *('pbc="T T T"', 'Lattice="1 0 0 0 1 0 0 0 1"', "multiplicity=3", "Properties=pos:R:3"),
        *("Properties=species:S:1:pos:R:99999999999", "smiles='", "=" * 300, "\0", "a=b=c=d"),
    ]
    waters = ["O 0 0 0", "H 0 0.76 0.59", "H 0 -0.76 0.59"]
    made = []
    for _ in range(count):
        atoms = [*waters, *(f"C {i} 0 {random_.random()}" for i in range(random_.randint(0, 3)))]
        n = len(atoms) if random_.random() < 0.9 else random_.choice([0, 2, 99, 10**8, 10**12])
        frame = "\n".join([str(n), random_.choice(comments), *atoms]) + "\n"
        made.append(_damaged(random_, frame) if random_.random() < 0.5 else frame)
    return made


def _damaged(random_: random.Random, text: str) -> str:
    """A few characters replaced, removed or doubled, or the end cut off."""
    characters = list(text)
    for _ in range(random_.choice([1, 1, 2, 20])):
        at = random_.randrange(len(characters))
        new = random_.choice("\n 0-9.eCHXx\t\0*")
        characters[at : at + 1] = random_.choice([[new], [], [new, characters[at]]])
    whole = "".join(characters)
    return whole[: random_.randrange(len(whole))] + "\n" if random_.random() < 0.1 else whole


def _mutated(random_: random.Random) -> str:
    """A good SMILES with something wrong in it; some stay good."""
    text = random_.choice(_sample())
    for _ in range(random_.randint(1, 3)):
        at = random_.randrange(len(text))
        new = random_.choice("CNOFclBrSP123%()[]=#/\\@+-.*H:~$> \t")
        text = random_.choice([text[:at] + new + text[at:], text[:at] + text[at + 1 :] or "C"])
    return text


@functools.cache
def _sample() -> list[str]:
    """Good SMILES."""
    return [line.split()[0] for line in SAMPLE.read_text().split("\n") if line]


def _bytes(random_: random.Random) -> bytes:
    return random_.randbytes(random_.choice([1, 10, 100, 3000]))


def _text(random_: random.Random) -> str:
    size = random_.randint(1, 80)
    return "".join(
        chr(random_.choice([random_.randint(1, 126), random_.randint(1, 0xD7FF)]))
        for _ in range(size)
    )


def _alphabet(random_: random.Random) -> str:
    return "".join(random_.choices("CNOcno123456789%()[]=#/\\@+-.H", k=random_.randint(1, 120)))


def _long(random_: random.Random) -> str:
    unit = random_.choice(["C", "CO", "C(C)", "c1ccccc1", "C=C", "[CH2]", "N#N."])
    return unit * random_.choice([50, 300, 1000, 5000])


def _rings(random_: random.Random) -> str:
    n = random_.choice([5, 50, 90])
    numbers = [f"%{i}" for i in range(10, 10 + n)]
    return "C" + "".join(numbers) + random_.choice(["C", "CC", "C" * n]) + "".join(numbers)


def _deep(random_: random.Random) -> str:
    n = random_.choice([10, 100, 600])
    return "C(" * n + "C" + ")" * (n - random_.choice([0, 0, 1]))


def _salt(random_: random.Random) -> str:
    ions = ["[Na+]", "[Cl-]", "O", "[K+]", "[NH4+]", "CC(=O)[O-]", "Cl", "[Br-]"]
    return ".".join(random_.choices(ions, k=random_.randint(2, 6)))


def _metal(random_: random.Random) -> str:
    element = random_.choice(ELEMENTS)
    return random_.choice(
        [f"[{element}]", f"C[{element}]", f"[{element}+2]", f"[{element}](C)(C)(C)C"]
    )


def _isotope(random_: random.Random) -> str:
    return random_.choice(_sample()) + f"[{random_.randint(0, 300)}{random_.choice('CHNO')}]"


def _charged(random_: random.Random) -> str:
    sign, size = random_.choice("+-"), random_.choice([1, 1, 2, 3, 9, 150])
    atom = random_.choice(["NH3", "O", "C", "S", "N", "P"])
    return f"{random_.choice(_sample())}[{atom}{sign}{size}]"


def _stereo(random_: random.Random) -> str:
    centre = random_.choice(["[C@H]", "[C@@H]", "[C@]", "[C@@]", "[N@+]", "[S@]", "[P@@]"])
    return f"F{centre}({random_.choice(_sample())})O"


def _commented(random_: random.Random) -> str:
    tail = random_.choice(["|^1:0|", "|", "name with spaces", "\t" * 500, "x" * 9000, "|$;;$|"])
    return f"{random_.choice(_sample())} {tail}"


_MAKERS: list[Callable[[random.Random], str | bytes]] = [
    *(_bytes, _text, _alphabet, _long, _rings, _deep, _salt, _metal, _isotope, _charged, _stereo),
    _commented,
]
