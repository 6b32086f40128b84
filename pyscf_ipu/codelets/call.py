"""`codelet`: a computation with a portable form in JAX and, on a CPU, a native one.

A JAX primitive that carries the portable form as its jaxpr.  That is what it means: simulators,
derivatives, batches and other platforms see the jaxpr; only the CPU's lowering replaces it by a
call of the native function of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from pyscf_ipu.codelets.loading import library, target

codelet_p = Primitive("codelet")
codelet_p.multiple_results = True


def codelet(name: str, portable: Callable[..., Any], *args: Any, **attributes: Any) -> Any:
    """`portable(*args)`, or on a CPU the native codelet `name` on the same arrays.

    Meant for traced code: called eagerly it compiles each time.

    name        of `loading.NAMES`.
    portable    pure function of arrays; returns an array or a tuple of arrays.
    attributes  constants that the native function reads and the portable one knows already:
                numbers or NumPy arrays.
    """
    closed, shape = jax.make_jaxpr(portable, return_shape=True)(*args)
    frozen = tuple((k, _Constant(v)) for k, v in sorted(attributes.items()))
    outs = codelet_p.bind(*args, name=name, portable=closed, attributes=frozen)
    return jax.tree.unflatten(jax.tree.structure(shape), outs)


class _Constant:
    """A hashable holder of a number or an array."""

    def __init__(self, value: Any) -> None:
        self.value = value
        array = np.asarray(value)
        self.key = (array.dtype.str, array.shape, array.tobytes())

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Constant) and self.key == other.key


def _portable(*operands: Any, portable: ClosedJaxpr, **_: Any) -> list:
    return jaxpr_as_fun(portable)(*operands)


def _native(*operands: Any, name: str, portable: ClosedJaxpr, attributes: tuple) -> list:
    if library() is None:
        return _portable(*operands, portable=portable)
    results = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in portable.out_avals]
    call = jax.ffi.ffi_call(target(name), results)
    return list(call(*operands, **{k: v.value for k, v in attributes}))


def _batch(args: Any, dims: Any, *, portable: ClosedJaxpr, **_: Any) -> Any:
    outs = jax.vmap(jaxpr_as_fun(portable), in_axes=tuple(dims))(*args)
    return outs, [0] * len(outs)


def _jvp(primals: Any, tangents: Any, *, portable: ClosedJaxpr, **_: Any) -> Any:
    filled = [ad.instantiate_zeros(t) for t in tangents]
    return jax.jvp(jaxpr_as_fun(portable), tuple(primals), tuple(filled))


def _impl(*operands: Any, **params: Any) -> list:
    return jax.jit(lambda *x: codelet_p.bind(*x, **params))(*operands)


codelet_p.def_impl(_impl)
codelet_p.def_abstract_eval(lambda *_, portable, **__: list(portable.out_avals))
batching.primitive_batchers[codelet_p] = _batch
ad.primitive_jvps[codelet_p] = _jvp
mlir.register_lowering(codelet_p, mlir.lower_fun(_portable, multiple_results=True))
mlir.register_lowering(codelet_p, mlir.lower_fun(_native, multiple_results=True), platform="cpu")
