"""Vertices with a price of their own, in the manner of TessellateIPU's tile primitives.

`tile_map` runs any function, and a simulator counts its cycles from its program.  If you know
better, because the vertex will be hand-written or was measured, declare its cycles and scratch
memory as functions of the shapes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import jax
from jaxtyping import PyTree

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.numerics.arrays import HostArray

Shapes = tuple[jax.ShapeDtypeStruct, ...]
PerfEstimate = Callable[..., "float | tuple[float, float]"]
TmpSpace = Callable[..., int]
Out = TypeVar("Out")

SUBROUTINE = "subroutine_"
"""What the names of subroutines begin with in a program."""


@dataclass(frozen=True)
class TilePrimitive:
    """A vertex for `tile_map` that says what it costs; also simply a function."""

    name: str
    vertex: Callable[..., PyTree]
    perf_estimate: PerfEstimate | None = None
    tmp_space: TmpSpace | None = None

    def __call__(self, *rows: HostArray) -> PyTree:
        return self.vertex(*rows)


def subroutine(fn: Callable[..., Out], **statics: object) -> Callable[..., Out]:
    """`fn` as a subroutine of vertices: a tile holds its code once, whichever of them call it.

    Args:
        fn: a pure function.
        statics: arguments that its program depends on; it is called with the others.
    """

    def called(*operands: PyTree, **named: PyTree) -> Out:
        return fn(*operands, **named, **statics)

    called.__name__ = called.__qualname__ = f"{SUBROUTINE}{getattr(fn, '__name__', 'function')}"
    return jax.jit(called)


def create_ipu_tile_primitive(
    name: str,
    vertex: Callable[..., PyTree],
    *,
    perf_estimate: PerfEstimate | None = None,
    tmp_space: TmpSpace | None = None,
) -> TilePrimitive:
    """Declare a vertex with its price.

    The price holds for the vertex and for batches of it; its derivatives are other vertices, and
    counted.

    Args:
        name: of its compute sets in profiles.
        vertex: what it computes: a pure function of arrays, one row of each argument of
            `tile_map`, to a pytree of arrays.
        perf_estimate: `(target, *rows)` -> cycles of one worker, or (lowest, highest); the rows
            have `.shape` and `.dtype`, the target is a `pyscf_ipu.ipu.Target`.  None: counted
            from the vertex's program.
        tmp_space: `(*rows)` -> bytes of scratch memory of one vertex.  None: counted likewise.

    Raises:
        TypeError: a price is a number instead of a function.
    """
    for what, price in (("perf_estimate", perf_estimate), ("tmp_space", tmp_space)):
        if price is not None and not callable(price):
            raise TypeError(
                f"{what}={price!r}: give a function of the shapes, because the same vertex runs "
                "on rows of different lengths"
            )
    return TilePrimitive(name, vertex, perf_estimate, tmp_space=tmp_space)


@dataclass(frozen=True)
class Declared:
    """The declared price of one vertex of a `tile_map`: of `times` runs on rows of these shapes."""

    primitive: TilePrimitive
    rows: Shapes
    times: int = 1

    def cycles(self, target: object) -> tuple[float, float] | None:
        """Lowest and highest cycles of a worker; None if they are to be counted.

        Raises:
            UsageError: the estimate is negative, not finite, or the wrong way round.
        """
        if self.primitive.perf_estimate is None:
            return None
        estimate = self.primitive.perf_estimate(target, *self.rows)
        low, high = estimate if isinstance(estimate, tuple) else (estimate, estimate)
        if not 0.0 <= low <= high < float("inf"):
            raise UsageError(
                f"vertex {self.primitive.name!r} estimates {estimate} cycles for rows "
                f"{[r.shape for r in self.rows]}: give one number >= 0, or (lowest, highest)"
            )
        return self.times * float(low), self.times * float(high)

    def scratch_bytes(self) -> int | None:
        """Scratch memory of a worker, which serves all its runs; None if it is to be counted."""
        if self.primitive.tmp_space is None:
            return None
        return int(self.primitive.tmp_space(*self.rows))
