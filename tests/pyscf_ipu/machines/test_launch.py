"""That Triton takes the kernels: they are lowered for an NVIDIA GPU, which need not be there."""

import jax
import numpy as np
import pytest
from jax._src.mesh import AbstractDevice
from jax.sharding import AbstractMesh

from pyscf_ipu.integrals.electron_repulsion import EriSide
from pyscf_ipu.machines import eri_kernel, grid_kernels, launch, supermatrix_kernel
from pyscf_ipu.numerics.hermite import n_hermite
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan

# JAX from 0.11 on: the kernels stay until there are others.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The Pallas Triton backend is deprecated:DeprecationWarning"
)

H100 = AbstractDevice("NVIDIA H100 80GB HBM3", 132, "cuda")


@pytest.fixture
def lowered(monkeypatch):
    """The program that a function of a batch of arrays becomes there."""
    monkeypatch.setattr(launch, "interpreted", lambda: False)
    monkeypatch.setattr(grid_kernels, "interpreted", lambda: False)

    def lower(function, *arguments):
        batches = jax.tree.map(lambda s: array(4, *s.shape), arguments)
        with jax.sharding.use_abstract_mesh(AbstractMesh((1,), ("x",), abstract_device=H100)):
            traced = jax.jit(jax.vmap(function)).trace(*batches)
            return traced.lower(lowering_platforms=("cuda",)).as_text()

    return lower


def array(*shape):
    return jax.ShapeDtypeStruct(shape, np.float32)


def side(order, products):
    return EriSide(
        array(2, 23, 9),
        array(2, 23, 9, 3),
        array(2, 23, 9, 3),
        array(2, 23, 9, products, n_hermite(order)),
    )


@pytest.mark.parametrize(
    ("orders", "products"),
    [((0, 0), (1, 1)), ((1, 1), (3, 3)), ((1, 2), (4, 16)), ((2, 2), (16, 16)), ((2, 2), (9, 9))],
)
def test_integrals(lowered, orders, products):
    bra, ket = (side(*each) for each in zip(orders, products, strict=True))
    same = orders[0] == orders[1]
    text = lowered(lambda a, b: eri_kernel.eri_class_pair(orders, a, b, same), bra, ket)
    assert f"eri_{orders[0]}_{orders[1]}" in text


def test_integrals_in_64_bit_mode(lowered):
    """Where Python's integers are int64, and a kernel must not mix them with int32."""
    with jax.enable_x64(True):
        test_integrals(lowered, (1, 2), (4, 16))
        test_supermatrix(lowered)
        test_grid(lowered, 56)


@pytest.mark.parametrize("n", [56, 170])
def test_grid(lowered, n):
    ao = array(16, 4, n, 128)
    assert "xc_density" in lowered(grid_kernels.density_kernel, ao, array(n, n))
    assert "xc_potential" in lowered(grid_kernels.potential_kernel, ao, array(16, 4, 128))


def test_supermatrix(lowered):
    plan = tile_plan(shape_of([6, 8, 1, 1, 1, 1], "sto-3g", False, 0))
    text = lowered(
        lambda m: supermatrix_kernel.full_supermatrix(plan, (m, m, 0.2)),
        array(plan.n_rows, plan.n_rows),
    )
    assert "supermatrix" in text
