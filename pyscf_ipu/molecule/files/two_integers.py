"""A comment of two integers, perhaps with the formula behind them: charge and multiplicity."""

import re
from collections.abc import Mapping

from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS
from pyscf_ipu.molecule.files.stated import MULTIPLICITIES, TOTAL_SPIN, Refused, charge_of

MAX_PAIR_CHARGE = 8
"""Two integers of which the first is larger are no charge and multiplicity."""

_TWO_INTEGERS = re.compile(
    r"(?:\*\s*xyz\s+)?\(?\s*([-+]?\d{1,9})(?:\.0*)?[\s,;]+([-+]?\d{1,9})(?:\.0*)?\s*\)?"
    r"(?:[\s,;]+([^-+.\d\s].*))?",
    re.ASCII,
)
"""Also as in ORCA's input, `* xyz 0 1`; perhaps with words behind them."""
_FORMULA = re.compile(r"(?:[A-Z][a-z]?\d{0,4}){1,40}", re.ASCII)
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
        Refused: no charge is given, and two integers cannot be these, or stand before words and
            can be another pair than 0 1.
    """
    pair = _TWO_INTEGERS.fullmatch(text.strip())
    if not pair:
        return {}
    given = charge_of(keys) if charge is None else charge
    stated, multiplicity = int(pair[1]), int(pair[2])
    electrons, unpaired = protons - stated, multiplicity - 1
    fit = 0 <= unpaired <= electrons and (electrons - unpaired) % 2 == 0
    fit = fit and abs(stated) <= MAX_PAIR_CHARGE
    has_words = pair[3] and not (_FORMULA.fullmatch(pair[3]) and _protons(pair[3]) == protons)
    if fit and (given == stated or (given is None and not has_words)):
        of_spin = any(key in keys for key in (*MULTIPLICITIES, TOTAL_SPIN))
        spin = {} if of_spin else {"multiplicity": str(multiplicity)}
        return {"charge": str(stated)} | spin
    says_nothing = not fit or (stated, multiplicity) == (0, 1)
    if given is not None or (has_words and says_nothing):
        return {}
    why = "" if fit else f", which do not fit nuclei of {protons} protons"
    raise Refused(
        "ambiguous",
        "ambiguous comment",
        f"the comment {text.strip()!r} might be charge and multiplicity{why}: state the charge as "
        "charge=, such as charge=0",
    )


def _protons(formula: str) -> int:
    parts = _OF_FORMULA.findall(formula)
    return sum(ATOMIC_NUMBERS.get(symbol, 0) * int(count or 1) for symbol, count in parts)
