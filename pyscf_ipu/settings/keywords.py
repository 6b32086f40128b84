"""The level of theory by keywords, for functions that take it as `**level: Unpack[LevelKeywords]`.

`help` and editors list the keywords as if each function had them in its signature.
"""

from collections.abc import Sequence
from typing import Literal, TypedDict

from pyscf_ipu.elements.cartesian import Cart


class LevelKeywords(TypedDict, total=False):
    """Fields of `Settings`; None stands for the given solver's value, or the default."""

    basis: str | None
    xc: str | None
    grid_level: int | Sequence[int] | None
    precision: str | None
    cart: Cart | None
    max_cycles: int | None
    prune: bool | None
    grid_kind: Literal["pyscf", "gaussian"] | None
    jk: Literal["exact", "ri", "auto"] | None
    fixed_cycles: int | None
    accuracy: Literal["energy", "orbitals", "properties"] | None
    first_cycles: Literal["coarse", "full"] | None
