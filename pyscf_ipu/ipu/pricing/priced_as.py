"""One result by two programs: the one that runs here, and the one that is priced.

A program for thousands of tiles may take minutes to compile for a CPU that has a faster way to the
same numbers.  `priced_as` keeps both: XLA sees the first, a simulator walks over the second.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import jax
from jax import Array
from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive, jaxpr_as_fun
from jax.interpreters import batching, mlir

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.codelets.call import Portable
from pyscf_ipu.ipu.vertices.equation import traced
from pyscf_ipu.ipu.vertices.trip_counts import sites

Out = TypeVar("Out")

priced_as_p = Primitive("priced_as")
priced_as_p.multiple_results = True


def priced_as(run: Callable[..., Out], priced: Callable[..., Out], *operands: object) -> Out:
    """`run(*operands)`, which a simulator prices as `priced(*operands)`; pytrees of arrays.

    Raises:
        TypeError: When it is priced, and `priced` returns other shapes or dtypes than `run`.
        UsageError: When it is priced, and `priced` has loops or branches that depend on data.
    """
    leaves, tree = jax.tree.flatten(operands)

    def flat(fn: Callable[..., Out]) -> Callable[..., Out]:
        return lambda *x: fn(*jax.tree.unflatten(tree, x))

    running, out = jax.make_jaxpr(flat(run), return_shape=True)(*leaves)
    form = Portable("priced_as", flat(priced), tuple(running.out_avals))
    outs = priced_as_p.bind(*leaves, run=running, portable=form)
    return jax.tree.unflatten(jax.tree.structure(out), outs)


def priced_form(eqn: JaxprEqn) -> ClosedJaxpr:
    """The program that is priced in the place of an equation of `codelet` or `priced_as`."""
    closed = traced(eqn.params["portable"], eqn)
    if any(sites(closed.jaxpr)):
        raise UsageError(
            "the program to be priced has loops or branches that depend on data: let them depend "
            "on shapes only"
        )
    return closed


def _run(*operands: Array, run: ClosedJaxpr, portable: Portable) -> list[Array]:
    del portable
    return list(jaxpr_as_fun(run)(*operands))


def _impl(*operands: object, **params: object) -> list[Array]:
    return jax.jit(lambda *x: priced_as_p.bind(*x, **params))(*operands)


priced_as_p.def_impl(_impl)
priced_as_p.def_abstract_eval(lambda *_, run, portable: list(run.out_avals))
mlir.register_lowering(priced_as_p, mlir.lower_fun(_run, multiple_results=True))


def _batch(
    operands: Sequence[Array], axes: Sequence[int | None], *, run: ClosedJaxpr, portable: Portable
) -> tuple[list[Array], list[int]]:
    """`vmap` of both programs."""

    def batched(fn: Callable[..., list[Array]]) -> Callable[..., list[Array]]:
        return lambda *x: jax.vmap(fn, in_axes=tuple(axes))(*x)

    outs = priced_as(batched(jaxpr_as_fun(run)), batched(portable), *operands)
    return outs, [0] * len(outs)


batching.primitive_batchers[priced_as_p] = _batch
