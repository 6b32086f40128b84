"""Common sets of a family: every element's shells have a place, the others are zero."""

import numpy as np

from pyscf_ipu.elements.auxiliary.choice import auxiliary_shells
from pyscf_ipu.elements.auxiliary.common import (
    AuxiliaryLevel,
    common_kinds,
    hermite_coefficients,
    in_common,
)

LEVEL = AuxiliaryLevel("def2-svp", False, "b3lyp")
FAMILY = (6, 7, 8, 9)


def test_shells_of_every_element_find_a_place():
    kinds = common_kinds(FAMILY, LEVEL)
    for z in FAMILY:
        own = auxiliary_shells(z, LEVEL.basis, LEVEL.xc)
        placed = in_common(z, kinds, LEVEL)
        assert [kind.l for kind in kinds] == [shell.l for shell in placed]
        assert all(len(s.exponents) == k.n_prim for s, k in zip(placed, kinds, strict=True))
        there = [s for s in placed if s.coefficients.any()]
        assert len(there) == len(own)
        assert sum(np.count_nonzero(s.coefficients) for s in there) == sum(
            len(s.exponents) for s in own
        )
    assert len(kinds) > len(auxiliary_shells(6, LEVEL.basis, LEVEL.xc))  # F has an f shell more


def test_an_element_without_a_set_has_no_functions():
    """Francium has none; bromine has one that a family could share."""
    kinds = common_kinds((35, 87), LEVEL)
    assert len(kinds) == len(common_kinds((35,), LEVEL)) > 0
    assert not any(shell.coefficients.any() for shell in in_common(87, kinds, LEVEL))


def test_spherical_functions_have_hermites_of_one_degree():
    kinds = common_kinds((6,), LEVEL)
    for kind, shell in zip(kinds, in_common(6, kinds, LEVEL), strict=True):
        e = hermite_coefficients(shell, cart=False)
        first = e.shape[2] - (kind.l + 1) * (kind.l + 2) // 2
        assert e.shape[1] == 2 * kind.l + 1
        assert np.abs(e[..., first:]).max() > 0
        np.testing.assert_allclose(e[..., :first], 0, atol=1e-14 * np.abs(e).max())
