"""A comment of two integers, perhaps with the formula behind them: charge and multiplicity."""

import re
from collections.abc import Mapping

from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS
from pyscf_ipu.molecule.files.stated import MULTIPLICITIES, TOTAL_SPIN, Refused, charge_of

MAX_PAIR_CHARGE = 8
"""Two integers of which the first is larger are no charge and multiplicity."""

_TWO_INTEGERS = re.compile(
    r"([-+]?\d{1,9})[\s,]+([-+]?\d{1,9})(?:\s+((?:[A-Z][a-z]?\d{0,4}){1,40}))?"
)
_OF_FORMULA = re.compile(r"([A-Z][a-z]?)(\d*)")


def charge_and_multiplicity(
    text: str, keys: Mapping[str, str], protons: int, charge: int | None
) -> dict[str, str]:
    """What a comment of two integers states, as keys; nothing for any other comment.

    Args:
        text: the comment without its keys.
        keys: those keys, in lower case.
        protons: the sum of the atomic numbers.
        charge: the charge that was given otherwise, which makes another one here meaningless.

    Raises:
        Refused: there are two integers, which cannot be these, and no charge is given.
    """
    pair = _TWO_INTEGERS.fullmatch(text.strip())
    if pair is None or (pair[3] and _protons(pair[3]) != protons):
        return {}
    given = charge_of(keys) if charge is None else charge
    stated, multiplicity = int(pair[1]), int(pair[2])
    electrons, unpaired = protons - stated, multiplicity - 1
    fit = 0 <= unpaired <= electrons and (electrons - unpaired) % 2 == 0
    if fit and abs(stated) <= MAX_PAIR_CHARGE and given in (None, stated):
        of_spin = any(key in keys for key in (*MULTIPLICITIES, TOTAL_SPIN))
        spin = {} if of_spin else {"multiplicity": str(multiplicity)}
        return {"charge": str(stated)} | spin
    if given is None:
        raise Refused(
            "ambiguous",
            "ambiguous comment",
            f"the comment {text.strip()!r} might be charge and multiplicity, which do not fit "
            f"nuclei of {protons} protons: state the charge as charge=, such as charge=0",
        )
    return {}


def _protons(formula: str) -> int:
    parts = _OF_FORMULA.findall(formula)
    return sum(ATOMIC_NUMBERS.get(symbol, 0) * int(count or 1) for symbol, count in parts)
