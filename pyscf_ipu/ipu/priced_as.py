"""One result by two programs: the one that runs here, and the one that is priced.

A program for thousands of tiles may take minutes to compile for a CPU that has a faster way to the
same numbers.  `priced_as` keeps both: XLA sees the first, a simulator walks over the second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import mlir

from pyscf_ipu.ipu.trips import sites

priced_as_p = Primitive("priced_as")
priced_as_p.multiple_results = True


def priced_as(run: Callable[..., Any], priced: Callable[..., Any], *operands: Any) -> Any:
    """`run(*operands)`, which a simulator prices as `priced(*operands)`; pytrees of arrays.

    Raises TypeError if the two return different structures, shapes or dtypes, and ValueError if
    `priced` has loops whose trips are only known when it runs: nobody would count them.
    """
    leaves, tree = jax.tree.flatten(operands)

    def flat(fn: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *x: fn(*jax.tree.unflatten(tree, x))

    running, out = jax.make_jaxpr(flat(run), return_shape=True)(*leaves)
    pricing = jax.make_jaxpr(flat(priced))(*leaves)
    if [(a.shape, a.dtype) for a in running.out_avals] != [
        (a.shape, a.dtype) for a in pricing.out_avals
    ]:
        raise TypeError("what runs and what is priced return different shapes or dtypes")
    if any(True for _ in sites(pricing.jaxpr)):
        raise ValueError("what is priced has loops or branches that depend on data")
    outs = priced_as_p.bind(*leaves, run=running, priced=pricing)
    return jax.tree.unflatten(jax.tree.structure(out), outs)


def _run(*operands: Any, run: ClosedJaxpr, priced: ClosedJaxpr) -> list:
    del priced
    return list(jaxpr_as_fun(run)(*operands))


def _impl(*operands: Any, **params: Any) -> list:
    return jax.jit(lambda *x: priced_as_p.bind(*x, **params))(*operands)


priced_as_p.def_impl(_impl)
priced_as_p.def_abstract_eval(lambda *_, run, priced: list(run.out_avals))
mlir.register_lowering(priced_as_p, mlir.lower_fun(_run, multiple_results=True))
