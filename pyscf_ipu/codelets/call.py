"""`codelet`: a computation with a portable form in JAX and, on a CPU, a native one.

A JAX primitive that carries its portable form, which defines it: simulators, derivatives, batches
and other platforms use that form; only the CPU's lowering replaces it by a call of the
native function of the same name, and then the portable form is not even traced.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import PyTree

from pyscf_ipu.codelets.frozen import Constant, Frozen
from pyscf_ipu.codelets.loading import IN_PLACE, library, target
from pyscf_ipu.numerics.arrays import Axes, HostArray, Operands, Tangents

Result = TypeVar("Result")
OneShape = tuple[int, ...] | jax.ShapeDtypeStruct
"""Of an array of the dtype of the first argument, or with a dtype of its own."""

codelet_p = Primitive("codelet")
codelet_p.multiple_results = True


def codelet(
    name: str,
    portable: Callable[..., Result],
    *args: HostArray,
    shape: tuple[int, ...] | tuple[OneShape, ...],
    **attributes: Constant,
) -> Result:
    """`portable(*args)`, or on a CPU the native codelet `name` on the same arrays.

    Meant for traced code: called eagerly it compiles each time.

    Args:
        name: one of `loading.NAMES`.
        portable: pure function of arrays; returns an array or a tuple of arrays.
        args: the arrays.
        shape: of the result, or a tuple of shapes; the dtype is that of the first argument, unless
            a `jax.ShapeDtypeStruct` among several names its own.
        attributes: constants that the native function reads and the portable one has already.

    Raises:
        TypeError: the portable form is used, and returns something else.
    """
    return _bind(name, portable, args, shape=shape, attributes=attributes, by_rows=False)


def row_codelet(
    name: str,
    portable: Callable[..., Result],
    *args: HostArray,
    shape: tuple[int, ...] | tuple[OneShape, ...],
) -> Result:
    """A codelet whose native function takes any number of leading axes, so serves batches, too.

    Raises:
        TypeError: as for `codelet`.
    """
    return _bind(name, portable, args, shape=shape, attributes={}, by_rows=True)


def _bind(
    name: str,
    portable: Callable[..., Result],
    args: tuple[HostArray, ...],
    shape: tuple[int, ...] | tuple[OneShape, ...],
    attributes: Mapping[str, Constant],
    by_rows: bool,
) -> Result:
    frozen = tuple((k, Frozen(v)) for k, v in sorted(attributes.items()))
    several = bool(shape) and not isinstance(shape[0], int)
    shapes: tuple = shape if several else (shape,)
    avals = tuple(_aval(s, args[0]) for s in shapes)
    form = Portable(name, portable, avals)
    outs = codelet_p.bind(*args, name=name, portable=form, attributes=frozen, by_rows=by_rows)
    return tuple(outs) if several else outs[0]  # type: ignore[return-value]


def _aval(shape: OneShape, first: HostArray) -> ShapedArray:
    if isinstance(shape, jax.ShapeDtypeStruct):
        return ShapedArray(shape.shape, shape.dtype)
    return ShapedArray(shape, first.dtype)


class Portable:
    """What a codelet means: a function of its operands, and the arrays that it returns."""

    def __init__(
        self, name: str, function: Callable[..., PyTree], out_avals: tuple[ShapedArray, ...]
    ) -> None:
        self.name, self.function, self.out_avals = name, function, out_avals

    def __call__(self, *operands: HostArray) -> list[Array]:
        outs = jax.tree.leaves(self.function(*map(jnp.asarray, operands)))
        returned = [(x.shape, x.dtype) for x in outs]
        promised = [(a.shape, a.dtype) for a in self.out_avals]
        # Under vmap or jvp the traced values still have the shapes of one call.
        if returned != promised:
            raise TypeError(f"codelet {self.name!r} returns {returned}, its call says {promised}")
        return outs

    def __repr__(self) -> str:
        return f"Portable({self.name})"


def _portable(*operands: Array, portable: Portable, **_: object) -> list[Array]:
    return portable(*operands)


def _native(
    *operands: Array, name: str, portable: Portable, attributes: tuple, **_: object
) -> list[Array]:
    if library() is None:
        return portable(*operands)
    results = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in portable.out_avals]
    aliases = {0: 0} if name in IN_PLACE else None
    call = jax.ffi.ffi_call(target(name), results, input_output_aliases=aliases)
    return list(call(*operands, **{k: v.value for k, v in attributes}))


def _batch(
    args: Operands, dims: Axes, *, name: str, portable: Portable, by_rows: bool, **params: object
) -> tuple[list[Array], list[int]]:
    if not by_rows:
        outs = jax.vmap(portable, in_axes=tuple(dims))(*args)
        return outs, [0] * len(outs)
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    rows = [batching.bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)]
    avals = tuple(a.update(shape=(size, *a.shape)) for a in portable.out_avals)
    form = Portable(name, jax.vmap(portable), avals)
    outs = codelet_p.bind(*rows, name=name, portable=form, by_rows=True, **params)
    return outs, [0] * len(outs)


def _jvp(
    primals: Operands, tangents: Tangents, *, portable: Portable, **_: object
) -> tuple[list[Array], list[Array]]:
    filled = [ad.instantiate_zeros(t) for t in tangents]
    return jax.jvp(portable, tuple(primals), tuple(filled))


def _impl(*operands: HostArray, **params: object) -> list[Array]:
    return jax.jit(lambda *x: codelet_p.bind(*x, **params))(*operands)


codelet_p.def_impl(_impl)
codelet_p.def_abstract_eval(lambda *_, portable, **__: list(portable.out_avals))
batching.primitive_batchers[codelet_p] = _batch
ad.primitive_jvps[codelet_p] = _jvp
mlir.register_lowering(codelet_p, mlir.lower_fun(_portable, multiple_results=True))
mlir.register_lowering(codelet_p, mlir.lower_fun(_native, multiple_results=True), platform="cpu")
