"""PopLibs's vertex formulas, against values worked out by hand from them."""

import numpy as np
import pytest

from pyscf_ipu.ipu.chip.popops import (
    WORKER_CYCLES,
    binary_1d,
    gather_cycles,
    reduction_cycles,
    scatter_add_cycles,
    unary_1d,
)
from pyscf_ipu.ipu.chip.quantity import HOWS


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (10, 6 * (29 + 1 * 3) + 11),
        (1024, 6 * (29 + 86 * 3) + 11),
        (12, 6 * (29 + 1 * 3) + 11),
        (13, 6 * (29 + 2 * 3) + 11),
    ],
)
def test_binary(n, expected):
    assert binary_1d("add", n) == expected


@pytest.mark.parametrize(
    ("name", "n", "expected"),
    [
        ("exp", 12, 6 * (33 + 1 * 6) + 20),
        ("exp", 60, 6 * (33 + 5 * 6) + 20),
        ("sqrt", 60, 6 * (17 + 5 * 10) + 20),
        ("erf", 60, 6 * (17 + 10 * 41) + 20),
        ("sin", 6, 6 * (17 + 2304) + 20),
    ],
)
def test_unary(name, n, expected):
    assert unary_1d(name, n) == expected


@pytest.mark.parametrize("price", [unary_1d, binary_1d])
def test_many_tiles_at_once(price):
    n = np.array([0, 1, 6, 100, 1024])
    found = price("mul", n)
    assert found.shape == n.shape
    np.testing.assert_array_equal(found, [price("mul", int(k)) for k in n])


@pytest.mark.parametrize("price", [unary_1d, binary_1d])
def test_a_tile_without_elements_has_no_vertex(price):
    assert price("mul", 0) == 0.0


@pytest.mark.parametrize("price", [unary_1d, binary_1d])
def test_an_operation_without_a_figure_is_an_error(price):
    assert "lgamma" not in WORKER_CYCLES
    with pytest.raises(KeyError):
        price("lgamma", 10)


def test_the_table_says_where_each_figure_is_from():
    for name, cost in WORKER_CYCLES.items():
        assert cost.how in HOWS, name
        assert cost.how not in ("unknown", "measured"), name
        assert cost.source, name
        assert cost.cycles > 0, name
        assert cost.elements in (1, 2, 4), name


def test_the_table_is_immutable():
    with pytest.raises(TypeError):
        WORKER_CYCLES["exp"] = WORKER_CYCLES["sin"]  # type: ignore[index]


def test_names_are_those_of_jax():
    from jax import lax

    # JAX keeps to itself add_any, the sum that differentiation makes, and random_bits.
    for name in set(WORKER_CYCLES) - {"add_any", "random_bits"}:
        assert getattr(lax, f"{name}_p").name == name


def test_a_transcendental_function_costs_what_the_vertex_designer_has_to_know():
    per_element = {k: v.cycles / v.elements for k, v in WORKER_CYCLES.items()}
    assert per_element["exp"] == 3
    assert per_element["sin"] > 100 * per_element["exp"]
    assert per_element["pow"] > 100 * per_element["exp"]


def test_look_ups():
    assert gather_cycles(10, 4) == 10 * (19 + 2 * 2)
    assert gather_cycles(10, 5) == 10 * (19 + 2 * 3)
    assert scatter_add_cycles(10, 4) == 10 * (11 + 3 * 4)
    np.testing.assert_array_equal(gather_cycles(np.array([0, 1]), 1), [0, 21])


def test_reduction():
    assert reduction_cycles(7, 5) == 7 * 3
    np.testing.assert_array_equal(reduction_cycles(2, np.array([0, 2, 3])), [0, 2, 4])
