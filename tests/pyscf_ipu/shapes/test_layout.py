"""Layout: every AO and every shell pair has exactly one place."""

import numpy as np
import pytest
from oracle import METHYL_CHLORIDE

from pyscf_ipu.shapes.layout import layout_of
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan


@pytest.fixture(
    params=[("sto-3g", False), ("6-31g*", True), ("cc-pvdz", False)], ids=lambda p: p[0]
)
def layout(request):
    return layout_of(shape_of(METHYL_CHLORIDE.numbers, *request.param, 0))


def test_every_ao_belongs_to_one_shell(layout):
    owners = np.zeros(layout.shape.n_ao, int)
    for group in layout.groups:
        for atom, first in zip(group.atom, group.ao, strict=True):
            span = slice(first, first + group.kind.n_functions)
            owners[span] += 1
            np.testing.assert_array_equal(layout.ao_atom[span], atom)
    np.testing.assert_array_equal(owners, 1)


def test_every_pair_of_shells_is_in_one_class(layout):
    seen = []
    for pair_class in layout.classes:
        for member in pair_class.members:
            assert layout.groups[member.a].kind.ls == pair_class.ls_a
            assert layout.groups[member.b].kind.ls == pair_class.ls_b
            first, second = layout.groups[member.a].ao, layout.groups[member.b].ao
            pairs = zip(first[member.first], second[member.second], strict=True)
            seen += [tuple(sorted(map(int, p))) for p in pairs]
    n_shells = sum(g.n_shells for g in layout.groups)
    assert len(seen) == len(set(seen)) == n_shells * (n_shells + 1) // 2


def test_classes_come_in_order_of_cost(layout):
    orders = [c.order for c in layout.classes]
    assert orders == sorted(orders)


def test_the_layout_of_a_shape_is_made_once(layout):
    assert layout_of(layout.shape) is layout


def test_index_arrays_are_int32(layout):
    """Two widths in one trace are an error as soon as a process has used both x64 modes."""
    plan = tile_plan(layout.shape, n_tiles=2)
    arrays = [*layout.slots, layout.first_ao, layout.ao_atom, layout.shape.slot_class()]
    arrays += [x for g in layout.groups for x in (g.atom, g.ao)]
    arrays += [x for c in layout.classes for m in c.members for x in (m.first, m.second)]
    arrays += [
        x for s in plan.strips for x in (s.source, s.segment, s.atom, s.pair_strip, s.pair_place)
    ]
    arrays += [x for b in plan.blocks for x in (b.bra_strip, b.ket_strip)] + [plan.row_of]
    assert {a.dtype for a in arrays} == {np.dtype(np.int32)}
