"""The elements of atoms, from symbols, atomic numbers and labels such as C_3.

Two things look like elements and are none: ghosts, which have functions and no nucleus, and names
of atoms as in PDB files, where CA is a carbon atom.
"""

import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS
from pyscf_ipu.molecule.files.stated import Refused
from pyscf_ipu.molecule.files.wrong_unit import COVALENT_RADII_ANGSTROM

HYDROGENS = {"D": 1, "T": 1}
"""Isotopes with a symbol of their own; electronic energies do not depend on nuclear masses."""

_KNOWN = {symbol: number for symbol, number in ATOMIC_NUMBERS.items() if number} | HYDROGENS

NEVER_NAMES = ("Cl", "Na", "Se", "Si")
"""Elements in capitals that are taken for no name of PDB, although these begin with C, N and S."""

BOND = 1.12
"""Bonds are no longer than this, in units of the sum of covalent radii."""

_LABEL = re.compile(r"([A-Za-z]{1,3})(?:[._]\w*|\d+[A-Za-z]?)?['*]*")
_GHOST = re.compile(
    r"@.*|.*:|0|(?:gh|ghost|bq|xx?|du|dummy|lp)(?![a-z]).*|(?:gh|ghost|bq)[a-z]{1,2}\d*"
    r"|[a-z]{1,2}\d*[-_.]?(?:gh|ghost|bq)\d*",
    re.IGNORECASE,
)


class Unknown(ValueError):
    """A label that names no element."""


def atomic_numbers(
    labels: Sequence[str], angstrom: Float[np.ndarray, "A 3"]
) -> Int[np.ndarray, " A"]:
    """The atomic numbers of some labels.

    Raises:
        Unknown: of the first label that names no element; it is the exception's argument.
        Refused: a ghost, or a name that may mean two elements.
    """
    numbers = {}
    names = []
    for label in dict.fromkeys(labels):
        numbers[label] = _KNOWN.get(label) or _number(label)
        if not numbers[label]:
            names.append(label)
            numbers[label] = _KNOWN.get(_letters(label).capitalize(), 0)
    atoms = np.array([numbers[label] for label in labels], dtype=np.int64)
    if names:
        _check_names(names, labels, atoms, angstrom=angstrom)
    return atoms


def _number(label: str) -> int:
    """The atomic number of a label; 0 if it may also be a name of PDB."""
    if label.isdecimal() and len(label) < 4 and 1 <= int(label) < len(ATOMIC_NUMBERS):
        return int(label)
    if _GHOST.fullmatch(label):
        what = f"{label[:40]!r} is a ghost or dummy atom: leave it out, or give a real atom"
        raise Refused("ghost", "ghost atoms", what)
    letters = _letters(label)
    symbol = letters.capitalize()
    if len(letters) > 1 and letters[0] in "CNOSHPcnoshp" and symbol not in (letters, *NEVER_NAMES):
        return 0
    if symbol not in _KNOWN:
        raise Unknown(label)
    return _KNOWN[symbol]


def _letters(label: str) -> str:
    """The letters that a label begins with; "" if it is none."""
    match = _LABEL.fullmatch(label)
    return match[1] if match else ""


def _check_names(
    names: Sequence[str],
    labels: Sequence[str],
    numbers: Int[np.ndarray, " A"],
    angstrom: Float[np.ndarray, "A 3"],
) -> None:
    """Raise Refused unless labels such as CA, in a frame all in capitals, must be elements.

    They must if all other atoms are further away than an atom of the first letter would have them.
    """
    places = [i for i, label in enumerate(labels) if label in names]
    one_case = all(map(str.isupper, labels)) or all(map(str.islower, labels))
    plain = one_case and all(map(str.isalpha, names)) and numbers.all()
    radii = np.array([COVALENT_RADII_ANGSTROM.get(z, 1.2) for z in numbers.tolist()])
    are_far = len(places) < len(labels) or len(labels) == 1
    for i in places:
        own = COVALENT_RADII_ANGSTROM[_KNOWN[labels[i][0].upper()]]
        distance = np.linalg.norm(angstrom - angstrom[i], axis=1)
        are_far &= bool((np.delete(distance, i) > BOND * np.delete(radii + own, i)).all())
    if plain and are_far:
        return
    name = names[0]
    what = f"the element {_letters(name).capitalize()}, or" if numbers[places[0]] else "no element:"
    raise Refused(
        "ambiguous",
        "ambiguous names of atoms",
        f"{name!r} may be {what} a name of {name[0].upper()} atoms as in PDB files: write symbols "
        "of elements, such as C and Ca",
    )
