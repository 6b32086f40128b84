"""The costliest quartet family of f shells: every operation has a price, and the plan knew it."""

from functools import partial

import jax
import numpy as np
import pytest

from pyscf_ipu.ipu.engine.algorithms.families import family_plan
from pyscf_ipu.ipu.engine.algorithms.family_vertex import family_eri_vertex
from pyscf_ipu.ipu.vertices.cycles import count
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.shapes.shape import shape_of


@pytest.mark.long
def test_four_f_shells_have_a_price():
    plan = family_plan(shape_of([9, 1], "6-31g(2df,p)", False, 0))
    family = max(plan.classes, key=lambda c: sum(k.l_max for k in plan.kinds(c)))
    assert [k.ls for k in plan.kinds(family)] == [(3,)] * 4
    a, b, c, d = (plan.layout.groups[g] for g in family.groups)
    m = family.shells.shape[1]
    shell = jax.ShapeDtypeStruct((m, 10), np.float32)  # one primitive, its factor, the centre
    weight = jax.ShapeDtypeStruct((m, 3), np.float32)
    vertex = partial(family_eri_vertex, (a, b, c, d), family.slices, Interaction(1.0))
    cost = count(jax.make_jaxpr(vertex)(shell, shell, shell, shell, weight).jaxpr)
    assert not cost.unknown
    assert cost.vector_cycles * 2 + cost.multiply_adds == pytest.approx(family.cost, rel=0.25)
