"""The tile plan: complete, without overlap, balanced, and made from shapes alone."""

import numpy as np
import pytest
from oracle import METHYL_CHLORIDE

from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan

NUMBERS = [6] * 5 + [7, 8] + [1] * 12


def plan_of(numbers=NUMBERS, basis="sto-3g", cart=False, **options):
    return tile_plan(shape_of(numbers, basis, cart, 0), **options)


PLANS = {
    "sto-3g": {},
    "small strips": {"strip_primitives": 36},
    "6-31g*": {"basis": "6-31g*", "numbers": METHYL_CHLORIDE.numbers},
    "cartesian": {"basis": "6-31g*", "cart": True, "numbers": METHYL_CHLORIDE.numbers},
    "cc-pvdz": {"basis": "cc-pvdz", "numbers": METHYL_CHLORIDE.numbers, "strip_primitives": 100},
}


@pytest.fixture(params=PLANS.values(), ids=list(PLANS))
def plan(request):
    return plan_of(**request.param)


def test_every_ao_pair_has_a_row_of_its_own(plan):
    n = plan.layout.shape.n_ao
    np.testing.assert_array_equal(plan.row_of, plan.row_of.T)
    rows = plan.row_of[np.tril_indices(n)]
    assert len(set(rows.tolist())) == n * (n + 1) // 2
    assert rows.min() >= 0
    assert rows.max() < plan.n_rows


def test_every_chunk_is_dealt_once(plan):
    for strips in plan.strips:
        empty = strips.source.max() if strips.source.size else 0
        dealt = strips.source.ravel()
        real = dealt[dealt < empty] if np.any(dealt == empty) else dealt
        assert len(real) == len(set(real.tolist()))
        # Each shell pair has a place of its own.
        places = strips.pair_strip * strips.pairs_per_strip + strips.pair_place
        assert len(set(places.tolist())) == len(places)
        assert strips.pair_strip.max() < strips.n_strips
        assert strips.pair_place.max() < strips.pairs_per_strip


def test_chunks_add_up_to_the_primitives_of_their_pair(plan):
    """The matrix `onto` gives each pair of a strip exactly the chunks that its depth needs."""
    for strips in plan.strips:
        groups = plan.layout.groups
        depth = np.concatenate(
            [
                np.full(len(m.first), groups[m.a].kind.n_prim * groups[m.b].kind.n_prim)
                for m in strips.pair_class.members
            ]
        )
        first = np.concatenate([[0], np.cumsum(np.ceil(depth / strips.chunk).astype(int))])
        onto = strips.onto()
        for pair in range(len(depth)):
            strip, place = strips.pair_strip[pair], strips.pair_place[pair]
            mine = strips.source[strip][onto[strip, place]]
            expected = range(first[pair], first[pair + 1])
            assert set(expected) <= set(mine.tolist())
            assert set(mine.tolist()) - set(expected) <= {first[-1]}  # the empty chunk


def test_every_pair_of_strips_meets_once(plan):
    for block in plan.blocks:
        bra, ket = plan.strips[block.bra], plan.strips[block.ket]
        met = set(zip(block.bra_strip.tolist(), block.ket_strip.tolist(), strict=True))
        assert len(met) == len(block.bra_strip) == len(block.tiles)
        if block.bra == block.ket:
            assert len(met) == bra.n_strips * (bra.n_strips + 1) // 2
            assert all(a <= b for a, b in met)
        else:
            assert len(met) == bra.n_strips * ket.n_strips
    classes = {(b.bra, b.ket) for b in plan.blocks}
    n = len(plan.strips)
    assert classes == {(a, b) for a in range(n) for b in range(a, n)}


@pytest.mark.parametrize(("n_tiles", "bound"), [(1, 1.0), (2, 0.98), (16, 0.9), (64, 0.6)])
def test_longest_processing_time_first_balances_the_load(n_tiles, bound):
    plan = plan_of(n_tiles=n_tiles, strip_primitives=36)
    load = plan.load()
    assert load.sum() == pytest.approx(plan_of(strip_primitives=36).load().sum())
    assert all(0 <= t < n_tiles for b in plan.blocks for t in b.tiles)
    assert plan.balance() >= bound
    # Graham's bound: no tile exceeds 4/3 of the best conceivable schedule.
    best = max(load.mean(), max(b.cost for b in plan.blocks))
    assert load.max() <= (4 / 3) * best + 1e-9


def test_a_plan_depends_on_the_shape_alone():
    one = plan_of([6] * 7 + [1] * 12)
    other = plan_of([9] * 7 + [1] * 11)
    assert one is other
    assert plan_of(n_tiles=4).n_tiles == 4
