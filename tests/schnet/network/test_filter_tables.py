import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packs import TINY, network, output, packed, qm9

from schnet.network.filter_tables import lagrange, predict, tabulate
from schnet.network.model import SchNet, pair_distances
from schnet.network.pack import PackShape

SHAPE = PackShape(64, 4, 700)


def test_the_cubic_goes_through_cubics():
    t = jnp.linspace(0.0, 1.0, 11, dtype=jnp.float32)
    knots = np.array([-1.0, 0.0, 1.0, 2.0])
    for power in range(4):
        found = sum(w * float(x**power) for w, x in zip(lagrange(t), knots, strict=True))
        np.testing.assert_allclose(found, np.asarray(t) ** power, atol=1e-6)


@pytest.mark.parametrize("gaussians", [7, 200])
def test_tables_give_the_filters_and_the_output(gaussians):
    config = dataclasses.replace(TINY, gaussians=gaussians)
    model = SchNet(config, jax.random.key(3))
    tables = tabulate(model)
    pack = packed(qm9([1, 33]), [0, 1], SHAPE, config)
    distance = pair_distances(pack)
    found = eqx.filter_jit(lambda tables, distance: tables(distance))(tables, distance)
    filters = eqx.filter_jit(lambda model, distance: model.filters(distance))(model, distance)
    for table, exact in zip(found, filters, strict=True):
        scale = float(jnp.max(jnp.abs(exact)))
        np.testing.assert_allclose(table, exact, atol=5e-6 * scale)
    np.testing.assert_allclose(
        predict(model, tables, pack), output(model, pack), rtol=1e-5, atol=1e-6
    )


def test_the_ends_of_the_range_are_in_the_table():
    model = network()
    ends = jnp.asarray([0.0, 1e-4, TINY.cutoff_bohr * (1 - 1e-6)], jnp.float32)
    for table, exact in zip(tabulate(model)(ends), model.filters(ends), strict=True):
        np.testing.assert_allclose(table, exact, atol=2e-6)
