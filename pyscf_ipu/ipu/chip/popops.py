"""Cycles of PopLibs's vertices for elementwise operations, look-ups and reductions.

The figures are those of PopLibs's own estimators (graphcore/poplibs): the table of operations in
lib/popops/popopsCycleEstimators.hpp, the vertices around them in popopsCycleEstimators.cpp, slices
in popops/PerformanceEstimation.cpp, reductions in ReductionPlan.cpp.  PopLibs calls them averages
of its simulator over random inputs, strongly dependent on the data.

*Worker* cycles are those of one of the workers of a tile, which take turns: with six workers, each
lasts six *tile* cycles.  Formulas are for float32, 2 elements to a 64-bit vector.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from pyscf_ipu.tiles.array import WORKERS

VECTOR, HALF_VECTOR = 2, 4  # elements of a 64-bit vector: float32, float16
SUPERVISOR_LAUNCH = 11
UNARY_SUPERVISOR = 9
UNARY_START, EXP_START = 17, 33  # worker cycles before and after the loop
BINARY_START, HALF_BINARY_START = 29, 26
UNARY_LOOP, BINARY_LOOP = 4, 2  # load, store and branch of a loop whose figure leaves them out
BRANCH = 1  # of a worker: an instruction like others, as in a measured loop of fifteen
GATHER_OFFSET, GATHER_VECTOR = 19, 2
SCATTER_OFFSET, SCATTER_ATOM = 11, 3

Count = int | float | np.number | np.ndarray
TileCycles = float | np.ndarray


@dataclass(frozen=True)
class OpCost:
    """Worker cycles of one turn of an operation's loop."""

    cycles: int | float
    """Cycles of the operation itself."""
    elements: int
    """Elements that one turn handles."""
    loop: int | float = 0
    """Cycles of load, store and branch, where `cycles` leaves them out; an operation fused into
    another's loop does not pay them."""
    _: KW_ONLY
    how: str
    """One of `pyscf_ipu.ipu.chip.quantity.HOWS`."""
    source: str


_unary = partial(OpCost, how="formula", source="PopLibs unary operation table, float")
_binary = partial(OpCost, how="formula", source="PopLibs binary operation table, float")
_of_int = partial(OpCost, how="formula", source="PopLibs binary operation table, int")
_logical = partial(OpCost, how="formula", source="PopLibs operation tables, bool")
_half = partial(OpCost, how="formula", source="PopLibs operation tables, half")


def _alike(names: str, cost: OpCost) -> dict[str, OpCost]:
    return dict.fromkeys(names.split(), cost)


_SHIFTS = "shift_left shift_right_logical shift_right_arithmetic"
_TWO_PRODUCTS = "two vector multiplications, which give powers up to 4; a reciprocal is not in it"
_CONVERSION = "one conversion instruction for each element"
_CLAMP = "a maximum and a minimum of PopLibs's table"
_RANDOM = "a random number and a store for each 64-bit vector, by the tile's own generator"
_ERF_INV = (
    "M. Giles, GPU Computing Gems 2, 109 (2012): a logarithm, a root, two sums of nine products, a "
    "selection"
)

WORKER_CYCLES: Mapping[str, OpCost] = MappingProxyType(
    {
        "exp": _unary(6, 2),
        "expm1": _unary(4, 1, UNARY_LOOP),
        "log1p": _unary(18, VECTOR, UNARY_LOOP),
        **_alike("log tanh logistic", _unary(12, 2)),
        "sqrt": _unary(10, 2),
        "rsqrt": _unary(8, 2),
        "cbrt": _unary(27, VECTOR, UNARY_LOOP),
        **_alike("square neg", _unary(2, 2)),
        "erf": _unary(41, 1),
        **_alike("sin cos", _unary(2300, 1, UNARY_LOOP)),
        "tan": _unary(5100, 1),
        "asin": _unary(102, 1, UNARY_LOOP),
        "abs": _unary(1, 1, UNARY_LOOP),
        **_alike("sign is_finite", _unary(5, VECTOR, UNARY_LOOP)),
        **_alike("floor ceil round", _unary(2, VECTOR, UNARY_LOOP)),
        **_alike("add add_any sub mul", _binary(1, VECTOR, BINARY_LOOP)),
        "div": _binary(10, 2),
        **_alike("max min", _binary(3, 2)),
        "pow": _binary(312, 1),
        "atan2": _binary(272, 2),
        "rem": _binary(133, 2),
        **_alike("lt le gt ge eq", _binary(14, 4)),
        "ne": _binary(20, 4),
        **_alike("and or xor", _logical(5, 4)),
        "not": _logical(17, 1, UNARY_LOOP),
        **_alike(_SHIFTS, _of_int(7, 1)),
        "select_n": OpCost(5, 1, 0, how="formula", source="PopLibs Select vertex"),
        "clamp": OpCost(6, 2, 0, how="derived", source=_CLAMP),
        "nextafter": _of_int(7, 1),
        "random_bits": OpCost(1, 2, 1, how="estimated", source=_RANDOM),
        "erf_inv": OpCost(12 + 10 + 2 * 18 + 5, 2, 0, how="derived", source=_ERF_INV),
        "integer_pow": OpCost(2, 2, BINARY_LOOP, how="estimated", source=_TWO_PRODUCTS),
        "convert_element_type": OpCost(2, 2, BINARY_LOOP, how="estimated", source=_CONVERSION),
    }
)
"""Operations by the names of JAX's primitives: float32, and bool for logic.

An operation that is missing has no figure, and no ground to guess one.
"""

_HALF: Mapping[str, OpCost] = MappingProxyType(
    {
        "exp": _half(4, 4),
        "expm1": _half(5, HALF_VECTOR, UNARY_LOOP),
        "log": _half(4, 4),
        "tanh": _half(4, 4),
        "logistic": _half(6, 4),
        "sqrt": _half(23, 4),
        "rsqrt": _half(19, 4),
        "cbrt": _half(17, HALF_VECTOR, UNARY_LOOP),
        **_alike("square neg", _half(2, 4)),
        "erf": _half(16, 1),
        **_alike("sin cos", _half(26, 1)),
        "tan": _half(5700, 1),
        "abs": _half(1, HALF_VECTOR, UNARY_LOOP),
        **_alike("sign is_finite", _half(5, HALF_VECTOR, UNARY_LOOP)),
        **_alike("floor ceil round", _half(2, HALF_VECTOR, UNARY_LOOP)),
        **_alike("add add_any sub mul", _half(1, HALF_VECTOR, BINARY_LOOP)),
        "div": _half(21, 4),
        **_alike("max min", _half(4, 4)),
        "pow": _half(325, 1),
        "atan2": _half(578, 4),
        "rem": _half(300, 4),
        **_alike("lt le gt ge eq", _half(9, 4)),
        "ne": _half(11, 4),
        "integer_pow": OpCost(2, HALF_VECTOR, BINARY_LOOP, how="estimated", source=_TWO_PRODUCTS),
        "clamp": OpCost(8, 4, 0, how="derived", source=_CLAMP),
    }
)


def op_cost(name: str, half: bool = False) -> OpCost:
    """The figure of an operation on float32, or on float16 where that has one of its own.

    Raises:
        KeyError: The operation is not in WORKER_CYCLES.
    """
    return _HALF.get(name, WORKER_CYCLES[name]) if half else WORKER_CYCLES[name]


def unary_1d(name: str, n: Count) -> TileCycles:
    """Tile cycles of PopLibs's UnaryOp1D on `n` float32 elements of one tile; 0 for no elements.

    Raises:
        KeyError: The operation is not in WORKER_CYCLES.
    """
    start = EXP_START if name == "exp" else UNARY_START
    return _vertex(n, start, WORKER_CYCLES[name], supervisor=UNARY_SUPERVISOR + SUPERVISOR_LAUNCH)


def binary_1d(name: str, n: Count) -> TileCycles:
    """The cycles of PopLibs's BinaryOp1D, like `unary_1d`."""
    return _vertex(n, BINARY_START, WORKER_CYCLES[name], supervisor=SUPERVISOR_LAUNCH)


def gather_cycles(offsets: Count, row: Count) -> TileCycles:
    """Worker cycles to look up `offsets` rows of `row` float32 elements each."""
    return offsets * (GATHER_OFFSET + GATHER_VECTOR * np.ceil(np.divide(row, VECTOR)))


def scatter_add_cycles(offsets: Count, row: Count) -> TileCycles:
    """Worker cycles to add `offsets` rows of `row` float32 elements (one atom each) in place."""
    return offsets * (SCATTER_OFFSET + SCATTER_ATOM * np.asarray(row, float)[()])


def reduction_cycles(partials: Count, elements: Count, vector: int = VECTOR) -> TileCycles:
    """Cycles in which PopLibs's planner adds `partials` arrays of `elements` elements, of which
    `vector` make 64 bits."""
    return partials * np.ceil(np.divide(elements, vector))


def _vertex(n: Count, start: int, cost: OpCost, supervisor: int) -> TileCycles:
    turns = np.ceil(np.ceil(np.divide(n, WORKERS)) / cost.elements)
    cycles = WORKERS * (start + turns * (cost.cycles + cost.loop)) + supervisor
    return np.where(np.asarray(n) > 0, cycles, 0.0)[()]
