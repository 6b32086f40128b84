"""The search for the lowest rotation, on a model whose response is a given matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.scf.lowest.rotation import PRODUCTS, RotationField, lowest_rotation

N, OCCUPIED = 12, 4


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def model(coupling, gradient=0.0, padding=0):
    """A response that couples single rotations, their field, and A + B as a dense matrix."""
    rng = np.random.default_rng(3)
    kernel = rng.normal(size=(N * N, N * N))
    kernel = coupling * (kernel + kernel.T)
    pairs = np.zeros((N, N), bool)
    pairs[OCCUPIED : N - padding, :OCCUPIED] = True
    levels = np.sort(rng.uniform(0.0, 1.0, N)) + np.where(np.arange(N) < OCCUPIED, -0.6, 0.2)

    def response(change):
        found = (kernel @ change.ravel()).reshape(N, N)
        return 0.5 * (found + found.T)

    def image(x):
        return (levels[:, None] - levels) * x + response(2.0 * (x + x.T))

    units = np.eye(N * N).reshape(N * N, N, N)[pairs.ravel()]
    dense = np.array([image(x)[pairs] for x in units])
    slope = np.where(pairs, gradient * rng.normal(size=(N, N)), 0.0)
    field = RotationField(*map(jnp.asarray, (np.eye(N), levels, slope, pairs, gradient == 0.0)))
    return response, field, dense, pairs


def search(coupling, **changes):
    response, field, dense, pairs = model(coupling, **changes)
    return jax.jit(lambda f: lowest_rotation(response, f))(field), dense, pairs


@pytest.mark.parametrize("coupling", [0.001, 0.01, 0.03, 0.1])
def test_the_sign_of_the_lowest_eigenvalue(coupling):
    found, dense, pairs = search(coupling)
    lowest = np.linalg.eigvalsh(dense)[0]
    assert np.sign(found.eigenvalue) == np.sign(lowest)
    assert found.eigenvalue >= lowest - 1e-9  # a bound from above
    assert found.products <= PRODUCTS
    x = np.asarray(found.vector)
    assert not x[~pairs].any()
    assert np.linalg.norm(x) == pytest.approx(1.0)


def test_both_signs_are_tried():
    lowest = [np.linalg.eigvalsh(search(c)[1])[0] for c in (0.001, 0.1)]
    assert lowest[0] > 0 > lowest[1]


def test_padding_takes_no_part():
    found, _, _ = search(0.1, padding=3)
    assert not np.asarray(found.vector)[N - 3 :].any()


def test_a_step_downhill_is_newtons():
    found, dense, pairs = search(0.001, gradient=1e-3)
    _, field, _, _ = model(0.001, gradient=1e-3)
    newton = np.linalg.solve(dense, -np.asarray(field.gradient)[pairs])
    assert np.linalg.norm(np.asarray(found.vector)[pairs] - newton) < 0.15 * np.linalg.norm(newton)
