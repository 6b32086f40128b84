"""Streaming memory: the DRAM of a machine, from which its IPUs load and to which they store.

Two functions mark in a program what is kept there; elsewhere they do nothing.
"""

from typing import TypeVar

import jax
from jax.extend.core import JaxprEqn, Primitive
from jax.interpreters import ad, batching, mlir

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.ipu.pricing.pricer import Pricer
from pyscf_ipu.ipu.steps.steps import STREAMED, Value

Tree = TypeVar("Tree")
"""An array, or a pytree of arrays."""

streaming_p = Primitive(STREAMED)
streaming_p.def_impl(lambda x, *, store: x)
streaming_p.def_abstract_eval(lambda x, *, store: x)
mlir.register_lowering(streaming_p, lambda _, x, *, store: [x])
batching.defvectorized(streaming_p)
# What was stored comes back in the backward pass, and the other way round.
ad.deflinear2(streaming_p, lambda ct, _, *, store: [streaming_p.bind(ct, store=not store)])


def streaming_store(x: Tree) -> Tree:
    """Put an array into streaming memory; it takes no tile memory until it is loaded."""
    return jax.tree.map(lambda leaf: streaming_p.bind(leaf, store=True), x)


def streaming_load(x: Tree) -> Tree:
    """Bring an array back to the tiles; whatever reads a stored array needs this first."""
    return jax.tree.map(lambda leaf: streaming_p.bind(leaf, store=False), x)


def streaming(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """Move bytes over the rate of the DRAM, which the IPUs of a machine share."""
    (value,) = ins
    store = eqn.params["store"]
    if store == (value.place.key[0] == STREAMED):
        raise UsageError(
            "streaming_store of an array that is in streaming memory already: leave it out"
            if store
            else "streaming_load of an array that is on the tiles: store it first, or leave it out"
        )
    return [p.stream(value, store)]
