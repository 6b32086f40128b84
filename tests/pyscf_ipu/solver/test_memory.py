"""The estimate of memory: what its terms grow with.  `benchmarks.generator.memory` measures it."""

from dataclasses import replace

import pytest

from pyscf_ipu import Settings
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.solver import memory
from pyscf_ipu.solver.memory import program_bytes

PROCESS = memory.BASE_BYTES
FIT = Settings(xc="wb97x", basis="def2-svp", grid_level=0, jk="ri")


def alkane(n, settings):
    numbers = [6] * n + [1] * (2 * n + 2)
    return shape_of(numbers, settings.basis, settings.cart, settings.grid)


def of(settings, n=12, **how):
    return program_bytes(alkane(n, settings), settings, **how)


def test_a_small_molecule_needs_what_the_compiler_needs():
    least, larger = (of(FIT, n) - PROCESS for n in (1, 2))
    assert least == larger > 2 * memory.COMPILER_BYTES


@pytest.mark.parametrize("jk", ["ri", "exact"])
def test_forces_come_after_the_energy(jk):
    """Their program is held besides, their arrays are not."""
    level = replace(FIT, jk=jk)
    energy, both = of(level), of(level, forces=True)
    assert energy < both < energy + (both - PROCESS) / 2


def test_forces_of_a_large_fit_need_more_than_the_energy():
    level = replace(FIT, xc="b3lyp")
    assert of(level, 40, forces=True) > 1.1 * of(level, 40)


def test_a_wider_evaluation_takes_the_place_of_the_scf():
    exact = Settings(basis="6-31g*", grid_level=0)
    narrow, mixed, wide = (
        of(replace(exact, precision=name), 16) - PROCESS for name in ("float32", "mixed", "float64")
    )
    assert narrow < mixed < 1.1 * wide < 1.1 * (narrow + wide)


def test_each_operator_of_exchange_has_products_of_its_own():
    full, ranges = replace(FIT, xc="b3lyp"), FIT
    one = of(full, 40) - PROCESS
    assert 1.15 * one < of(ranges, 40) - PROCESS < 1.7 * one


def test_points_beyond_what_is_kept_cost_their_numbers_alone():
    coarse, fine = (
        replace(FIT, grid_level=level, first_cycles="full", basis="def2-tzvp") for level in (3, 9)
    )
    more = alkane(30, fine).n_grid - alkane(30, coarse).n_grid
    assert of(fine, 30) - of(coarse, 30) == pytest.approx(more * 4 * memory.POINT_NUMBERS, rel=0.01)
