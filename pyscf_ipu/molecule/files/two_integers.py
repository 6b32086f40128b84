"""A comment of two integers, perhaps with the formula behind them: charge and multiplicity."""

import re
from collections.abc import Mapping

from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS
from pyscf_ipu.molecule.files.stated import MULTIPLICITIES, TOTAL_SPIN, Refused, charge_of

MAX_PAIR_CHARGE = 8
"""Two integers of which the first is larger are no charge and multiplicity."""

_TWO_INTEGERS = re.compile(
    r"(?:\*\s*xyz\s+)?\(?\s*([-+]?\d{1,9})(?:\.0*)?[\s,;]+([-+]?\d{1,9})(?:\.0*)?\s*\)?"
    r"(?:\s+((?:[A-Z][a-z]?\d{0,4}){1,40}))?",
    re.ASCII,
)
"""Also as in ORCA's input, `* xyz 0 1`."""
_BEFORE_WORDS = re.compile(r"([-+]?\d{1,9}[\s,;]+\d{1,9})[\s,;]+[^-+.\d\s].*", re.ASCII)
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
        Refused: there are two integers, which cannot be these, or words behind two that can and
            are not 0 1; and no charge is given.
    """
    pair, words = _TWO_INTEGERS.fullmatch(text.strip()), _BEFORE_WORDS.fullmatch(text.strip())
    if pair and pair[3] and _protons(pair[3]) != protons:
        pair = None
    if pair is None and words:
        return _before_words(words[1], keys, protons, charge=charge)
    if pair is None:
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


def _before_words(
    text: str, keys: Mapping[str, str], protons: int, charge: int | None
) -> dict[str, str]:
    """Two integers before words count as such a pair only where they fit; then 0 1 says nothing."""
    try:
        found = charge_and_multiplicity(text, keys, protons, charge=charge)
    except Refused:
        return {}
    if found in ({}, {"charge": "0"}, {"charge": "0", "multiplicity": "1"}) or charge is not None:
        return {}
    raise Refused(
        "ambiguous",
        "ambiguous comment",
        f"the comment begins with {text!r}, which might be charge and multiplicity: state the "
        "charge as charge=, such as charge=0",
    )


def _protons(formula: str) -> int:
    parts = _OF_FORMULA.findall(formula)
    return sum(ATOMIC_NUMBERS.get(symbol, 0) * int(count or 1) for symbol, count in parts)
