"""One compiled step: updates on packs that are spread over devices.

Shape legend: I updates in a call (device iterations), D devices (replication factor), S packs that
a device adds up before an update (gradient accumulation).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Bool, Float, Int

from .config import Optimizer
from .model import SchNet
from .optimizer import averaged
from .pack import Pack

AXIS = "replica"


class State(eqx.Module):
    """All that a step changes."""

    model: SchNet
    mean: SchNet
    """Running mean of the weights."""
    moments: optax.OptState
    updates: Int[Array, ""]


class Report(NamedTuple):
    """What a step says of each of its updates, [I]; errors in units of the standard deviation."""

    loss: Float[Array, " I"]
    absolute_error: Float[Array, " I"]
    """Sum over the molecules of the update."""
    molecules: Float[Array, " I"]
    gradient_norm: Float[Array, " I"]


class Sums(NamedTuple):
    """Sums over the molecules of a pack or of all packs of an update."""

    loss: Float[Array, ""]
    absolute_error: Float[Array, ""]
    molecules: Float[Array, ""]


def start(model: SchNet, rule: optax.GradientTransformation) -> State:
    """The state before the first update."""
    arrays = eqx.filter(model, eqx.is_array)
    # A copy: the step gives its old state's memory to the new one, and may not do so twice.
    mean = jax.tree.map(lambda x: x.copy() if eqx.is_array(x) else x, model)
    return State(model, mean, rule.init(arrays), jnp.zeros((), jnp.int32))


def mesh(devices: int) -> Mesh:
    """The first so many devices, of all processes, in a row."""
    return Mesh(np.array(jax.devices()[:devices]), (AXIS,))


def make_step(
    rule: optax.GradientTransformation, config: Optimizer, dtype: Any, devices: Mesh
) -> Callable[[State, Pack], tuple[State, Report]]:
    """The compiled step: takes packs [I, D, S, ...] and gives the next state and a report.

    An update without molecules changes nothing, nor does one whose loss or gradient is not finite,
    which is reported as it is, nor any after it in the same call.
    """

    def body(state: State, packs: Pack, sound: Bool[Array, ""]) -> tuple[State, Report, Any]:
        gradient, sums = _summed_gradient(state.model, packs, config.loss, dtype)
        gradient, sums = jax.lax.psum((gradient, sums), AXIS)
        n = jnp.maximum(sums.molecules, 1.0)
        gradient = jax.tree.map(lambda g: g / n, gradient)
        norm = optax.tree.norm(gradient)
        arrays: Any = eqx.filter(state.model, eqx.is_array)
        with jax.numpy_dtype_promotion("standard"):  # optax adds integers to floats
            change, moments = rule.update(gradient, state.moments, arrays)
        model = eqx.apply_updates(state.model, change)
        new = State(
            model=model,
            mean=averaged(state.mean, model, state.updates, config.ema),
            moments=moments,
            updates=state.updates + 1,
        )
        sound = sound & jnp.isfinite(sums.loss) & jnp.isfinite(norm)
        good = sound & (sums.molecules > 0.0)
        new = jax.tree.map(lambda a, b: jnp.where(good, a, b) if eqx.is_array(a) else a, new, state)
        return new, Report(sums.loss / n, sums.absolute_error, sums.molecules, norm), sound

    def run(state: State, packs: Pack) -> tuple[State, Report]:
        # Of [I, 1, S, ...] here, the device's own part; state has no leading axis.
        packs = jax.tree.map(lambda x: x[:, 0], packs)
        arrays, rest = eqx.partition(state, eqx.is_array)

        def one(carry: Any, chosen: Pack) -> tuple[Any, Report]:
            arrays, sound = carry
            new, report, sound = body(eqx.combine(arrays, rest), chosen, sound)
            return (eqx.filter(new, eqx.is_array), sound), report

        (arrays, _), report = jax.lax.scan(one, (arrays, jnp.asarray(True)), packs)
        return eqx.combine(arrays, rest), report

    everywhere = PartitionSpec()

    @partial(jax.jit, static_argnums=0, donate_argnums=1)
    def call(rest: Any, arrays: Any, packs: Pack) -> tuple[Any, Report]:
        def mapped(arrays: Any, packs: Pack) -> tuple[Any, Report]:
            state, report = run(eqx.combine(arrays, rest.value), packs)
            return eqx.filter(state, eqx.is_array), report

        return jax.shard_map(
            mapped,
            mesh=devices,
            in_specs=(everywhere, PartitionSpec(None, AXIS)),
            out_specs=(everywhere, everywhere),
            check_vma=False,
        )(arrays, packs)

    def step(state: State, packs: Pack) -> tuple[State, Report]:
        arrays, rest = eqx.partition(state, eqx.is_array)
        arrays, report = call(_Static(rest), arrays, packs)
        return eqx.combine(arrays, rest), report

    return step


class _Static:
    """What of a state is no array; there is one kind in a run, so all are equal to `jit`."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static)


def place(packs: Pack, devices: Mesh) -> Pack:
    """Packs [I, D, S, ...] of host memory on the devices, D over them.

    With several processes each gives all packs, and puts on its devices what belongs there.
    """
    sharding = NamedSharding(devices, PartitionSpec(None, AXIS))

    def put(x: np.ndarray) -> Array:
        return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])

    return jax.tree.map(put, packs)


def replicate(state: State, devices: Mesh) -> State:
    """The same state on every device."""
    sharding = NamedSharding(devices, PartitionSpec())

    def put(x: Any) -> Any:
        if not eqx.is_array(x):
            return x
        host = np.asarray(x)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(put, state)


def _summed_gradient(model: SchNet, packs: Pack, kind: str, dtype: Any) -> tuple[SchNet, Sums]:
    """Gradient of the summed loss of packs [S, ...], one pack after another."""

    def one(carry: Any, pack: Pack) -> tuple[Any, None]:
        def objective(arrays: Any) -> tuple[Float[Array, ""], Sums]:
            sums = _sums(_cast(eqx.combine(arrays, rest), dtype), pack, kind)
            return sums.loss, sums

        gradient, sums = jax.grad(objective, has_aux=True)(arrays)
        return jax.tree.map(jnp.add, carry, (gradient, sums)), None

    arrays, rest = eqx.partition(model, eqx.is_array)
    zero = Sums(*[jnp.zeros((), jnp.float32)] * 3)
    nothing = (jax.tree.map(jnp.zeros_like, arrays), zero)
    (gradient, sums), _ = jax.lax.scan(one, nothing, packs)
    return gradient, sums


def _sums(model: SchNet, pack: Pack, kind: str) -> Sums:
    error = jnp.where(pack.there, model(pack) - pack.target, 0.0)
    size = jnp.abs(error)
    losses = {
        "l1": size,
        "mse": error * error,
        "huber": jnp.where(size < 1.0, 0.5 * error * error, size - 0.5),
    }
    n = jnp.sum(pack.there.astype(jnp.float32))
    return Sums(jnp.sum(losses[kind]), jnp.sum(size), n)


def _cast(model: SchNet, dtype: Any) -> SchNet:
    """The layers in another precision; gradients come back in the weights' own."""
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_array(x) else x, model)
