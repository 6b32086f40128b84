"""Hostile records, from a seed: what a file of SMILES, an SDF or an XYZ may hold and should not."""

import csv
import random
from collections.abc import Callable

from benchmarks import harness
from benchmarks.molecules import smiles_of
from qm1b.commands.generate import SAMPLE

GOOD = smiles_of(SAMPLE)
ELEMENTS = (
    "Li Na K Cs Be Mg Ca Al Ga Sn Pb Bi Sc Ti Fe Co Ni Cu Zn Ru Pd Pt Au Hg Ce U Og Xx".split()
)


def hostile_lines(random_: random.Random, count: int) -> list[bytes]:
    """At least `count` lines: the known bad ones, then random ones of every kind."""
    escaped = known("hostile_lines", "line")
    texts = [text.encode().decode("unicode_escape") for text in escaped]
    texts += known("pathological_smiles", "smiles")
    makers = [_mutated, _mutated, _mutated, *_MAKERS]
    lines = [text.encode() for text in texts]
    while len(lines) < count:
        made = random_.choice(makers)(random_)
        lines.append(made if isinstance(made, bytes) else made.encode(errors="replace"))
    random_.shuffle(lines)
    return [line.replace(b"\n", b" ") for line in lines]


def known(name: str, column: str) -> list[str]:
    """A column of one of the tests' files of bad lines."""
    with open(harness.ROOT / "tests" / "data" / f"{name}.csv", newline="") as stream:
        rows = csv.DictReader(line for line in stream if not line.startswith("# "))
        return [row[column] for row in rows]


def damaged_blocks(random_: random.Random, count: int) -> list[str]:
    """Entries of an SDF: whole, damaged, and no entries at all."""
    from rdkit import Chem, RDLogger
    from rdkit.Chem import rdDistGeom

    RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined]
    made = ["", "\n", "M  END\n", "\n\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n"]
    while len(made) < count:
        graph = Chem.AddHs(Chem.MolFromSmiles(random_.choice(GOOD)))
        if rdDistGeom.EmbedMolecule(graph, randomSeed=len(made)):
            continue
        if random_.random() < 0.2:
            graph = Chem.RemoveHs(graph)
        block = Chem.MolToMolBlock(graph, forceV3000=random_.random() < 0.3)
        charge = random_.choice(["", "0", "-3", "x"])
        block += f"> <charge>\n{charge}\n\n" if charge else ""
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
    text = random_.choice(GOOD)
    for _ in range(random_.randint(1, 3)):
        at = random_.randrange(len(text))
        new = random_.choice("CNOFclBrSP123%()[]=#/\\@+-.*H:~$> \t")
        text = random_.choice([text[:at] + new + text[at:], text[:at] + text[at + 1 :] or "C"])
    return text


def _text(random_: random.Random) -> str:
    """Characters of any kind."""
    size = random_.randint(1, 80)
    ranges = ((1, 126), (1, 0xD7FF))
    return "".join(chr(random_.choice([random_.randint(*r) for r in ranges])) for _ in range(size))


def _long(random_: random.Random) -> str:
    unit = random_.choice(["C", "CO", "C(C)", "c1ccccc1", "C=C", "[CH2]", "N#N."])
    return unit * random_.choice([50, 300, 1000, 5000])


def _rings(random_: random.Random) -> str:
    n = random_.choice([5, 50, 90])
    numbers = "".join(f"%{i}" for i in range(10, 10 + n))
    return "C" + numbers + random_.choice(["C", "CC", "C" * n]) + numbers


def _deep(random_: random.Random) -> str:
    n = random_.choice([10, 100, 600])
    return "C(" * n + "C" + ")" * (n - random_.choice([0, 0, 1]))


def _salt(random_: random.Random) -> str:
    ions = ["[Na+]", "[Cl-]", "O", "[K+]", "[NH4+]", "CC(=O)[O-]", "Cl", "[Br-]"]
    return ".".join(random_.choices(ions, k=random_.randint(2, 6)))


def _metal(random_: random.Random) -> str:
    element = random_.choice(ELEMENTS)
    return random_.choice(["[{}]", "C[{}]", "[{}+2]", "[{}](C)(C)(C)C"]).format(element)


def _charged(random_: random.Random) -> str:
    sign, size = random_.choice("+-"), random_.choice([1, 1, 2, 3, 9, 150])
    atom = random_.choice(["NH3", "O", "C", "S", "N", "P"])
    return f"{random_.choice(GOOD)}[{atom}{sign}{size}]"


def _stereo(random_: random.Random) -> str:
    centre = random_.choice(["[C@H]", "[C@@H]", "[C@]", "[C@@]", "[N@+]", "[S@]", "[P@@]"])
    return f"F{centre}({random_.choice(GOOD)})O"


def _commented(random_: random.Random) -> str:
    tail = random_.choice(["|^1:0|", "|", "name with spaces", "\t" * 500, "x" * 9000, "|$;;$|"])
    return f"{random_.choice(GOOD)} {tail}"


_MAKERS: list[Callable[[random.Random], str | bytes]] = [
    lambda r: r.randbytes(r.choice([1, 10, 100, 3000])),
    _text,
    lambda r: "".join(r.choices("CNOcno123456789%()[]=#/\\@+-.H", k=r.randint(1, 120))),
    _long,
    _rings,
    _deep,
    _salt,
    _metal,
    lambda r: r.choice(GOOD) + f"[{r.randint(0, 300)}{r.choice('CHNO')}]",  # an isotope
    _charged,
    _stereo,
    _commented,
]
