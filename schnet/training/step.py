"""One compiled step: updates on packs that are spread over devices.

Shape legend: I updates in a call (device iterations), D devices (replication factor), S packs that
a device adds up before an update (gradient accumulation).
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.typing import DTypeLike
from jaxtyping import Bool, Float, Int, PyTree

from schnet.network.config import Optimizer
from schnet.network.forces import energies_and_forces, shares
from schnet.network.model import SchNet
from schnet.network.pack import Pack
from schnet.training.optimizer import LEAST_SCALE, LossScale, averaged, rounded

AXIS = "replica"
SPREAD, EVERYWHERE = PartitionSpec(None, AXIS), PartitionSpec()

Sound = Bool[Array, ""]
"""Whether all losses and gradients so far are finite."""


class TrainingState(eqx.Module):
    """Everything that a step changes; all leaves are arrays."""

    model: SchNet
    mean: SchNet
    """Running mean of the weights."""
    moments: optax.OptState
    updates: Int[Array, ""]
    scale: LossScale | None = None
    """For layers in float16; else there is none."""


class StepReport(NamedTuple):
    """Results of each update of a step, [I]; errors in units of the standard deviation."""

    loss: Float[Array, "*I"]
    """Mean over the molecules of the update."""
    absolute_error: Float[Array, "*I"]
    """Sum over the molecules of the update."""
    molecules: Float[Array, "*I"]
    forces_error: Float[Array, "*I"]
    """Sum over the components of forces, in the same units per Bohr; 0 without forces."""
    components: Float[Array, "*I"]
    """Number of components of forces in the update, learned or not."""
    gradient_norm: Float[Array, "*I"]


class Sums(NamedTuple):
    """Sums over the molecules of a pack or of all packs of an update."""

    loss: Float[Array, ""]
    absolute_error: Float[Array, ""]
    molecules: Float[Array, ""]
    forces_error: Float[Array, ""]
    components: Float[Array, ""]


class Loss(NamedTuple):
    """What a training minimises: of a molecule, the loss of its target; with forces, the weighted
    mean of that and of the mean over the components of its forces."""

    kind: Literal["l1", "huber", "mse"]
    forces_weight: float | None = None
    """Weight of the forces beside 1 of the energy; None without forces."""


def start(model: SchNet, rule: optax.GradientTransformation, half: bool = False) -> TrainingState:
    """The state before the first update; `half` for layers in float16."""
    # A copy: the step gives the memory of its old state to the new one, and cannot do so twice.
    mean = jax.tree.map(jnp.copy, model)
    weights: PyTree = model
    return TrainingState(
        model,
        mean,
        rule.init(weights),
        updates=jnp.zeros((), jnp.int32),
        scale=LossScale.first() if half else None,
    )


def mesh(devices: int) -> Mesh:
    """The first devices of all processes, in a row."""
    return Mesh(np.array(jax.devices()[:devices]), (AXIS,))


def make_step(
    rule: optax.GradientTransformation,
    config: Optimizer,
    dtype: DTypeLike,
    devices: Mesh,
    forces: bool = False,
    rounding: bool = False,
) -> Callable[[TrainingState, Pack], tuple[TrainingState, StepReport]]:
    """Compile the step: from a state and packs [I, D, S, ...] to the next state and a report.

    With `forces`, those of the packs are learned, too. An update without molecules changes nothing.
    Neither does an update whose loss or gradient is not finite, nor any after it in the same call;
    its report has the values that are not finite.  In float16 a gradient that overflows is no such
    update, as long as the loss is finite: the scale of the loss is halved instead, and the report
    has a gradient of norm 0.  With `rounding`, weights are rounded to float16 stochastically.
    """

    loss = Loss(config.loss, config.forces_weight if forces else None)

    def one(
        carry: tuple[TrainingState, Sound], packs: Pack
    ) -> tuple[tuple[TrainingState, Sound], StepReport]:
        state, sound = carry
        # The names are for profiles (schnet.training.costs.training_price).
        factor = None if state.scale is None else state.scale.factor
        local = _summed_gradient(state.model, packs, loss, dtype=dtype, factor=factor)
        with jax.named_scope("all_reduce"):
            gradient, sums = jax.lax.psum(local, AXIS)
        with jax.named_scope("update"):
            new, report = _update(state, gradient, sums, rule=rule, ema=config.ema)
            if rounding:
                key = jax.random.fold_in(jax.random.key(0), state.updates)
                new = eqx.tree_at(lambda s: s.model, new, rounded(new.model, key))
            finite = jnp.isfinite(report.gradient_norm)
            bearable = finite if factor is None else finite | (factor > LEAST_SCALE)
            sound = sound & jnp.isfinite(report.loss) & bearable
            good = sound & finite & (report.molecules > 0.0)
            after = jax.tree.map(partial(jnp.where, good), new, state)
            if state.scale is not None:
                after = eqx.tree_at(lambda s: s.scale, after, state.scale.after(finite))
                norm = jnp.where(finite | ~sound, report.gradient_norm, 0.0)
                report = report._replace(gradient_norm=norm)
        return (after, sound), report

    def run(state: TrainingState, packs: Pack) -> tuple[TrainingState, StepReport]:
        packs = jax.tree.map(lambda x: x[:, 0], packs)  # [I, S, ...]
        (state, _), report = jax.lax.scan(one, (state, jnp.asarray(True)), packs)
        return state, report

    mapped = jax.shard_map(
        run,
        mesh=devices,
        in_specs=(EVERYWHERE, SPREAD),
        out_specs=(EVERYWHERE, EVERYWHERE),
        check_vma=False,
    )
    return jax.jit(mapped, donate_argnums=0)


def _update(
    state: TrainingState,
    gradient: PyTree,
    sums: Sums,
    rule: optax.GradientTransformation,
    ema: float,
) -> tuple[TrainingState, StepReport]:
    """An update by a gradient and sums over all of its packs."""
    n = jnp.maximum(sums.molecules, 1.0)
    divisor = n if state.scale is None else n * state.scale.factor
    gradient = jax.tree.map(lambda g: g / divisor, gradient)
    norm = optax.tree.norm(gradient)
    weights: PyTree = state.model
    with jax.numpy_dtype_promotion("standard"):  # optax adds integers to floats
        change, moments = rule.update(gradient, state.moments, weights)
    model = eqx.apply_updates(weights, change)
    mean = averaged(state.mean, model, state.updates, decay=ema)
    new = TrainingState(model, mean, moments, updates=state.updates + 1, scale=state.scale)
    return new, StepReport(**sums._replace(loss=sums.loss / n)._asdict(), gradient_norm=norm)


def _summed_gradient(
    model: SchNet,
    packs: Pack,
    loss: Loss,
    dtype: DTypeLike,
    factor: Float[Array, ""] | None,
) -> tuple[SchNet, Sums]:
    """Gradient of the summed loss of packs [S, ...], times a factor, one pack after another."""

    def objective(model: SchNet, pack: Pack) -> tuple[Float[Array, ""], Sums]:
        # The layers in another precision; gradients come back in the precision of the weights.
        with jax.named_scope("forward"):
            sums = _sums(jax.tree.map(lambda x: x.astype(dtype), model), pack, loss)
            return sums.loss if factor is None else sums.loss * factor, sums

    def one(total: tuple[SchNet, Sums], pack: Pack) -> tuple[tuple[SchNet, Sums], None]:
        terms = jax.grad(objective, has_aux=True)(model, pack)
        with jax.named_scope("backward"):
            return jax.tree.map(jnp.add, total, terms), None

    zero = Sums._make([jnp.zeros((), jnp.float32)] * len(Sums._fields))
    total, _ = jax.lax.scan(one, (jax.tree.map(jnp.zeros_like, model), zero), packs)
    return total


def _sums(model: SchNet, pack: Pack, loss: Loss) -> Sums:
    n = jnp.sum(pack.there.astype(jnp.float32))
    components = 3.0 * jnp.sum((pack.numbers > 0).astype(jnp.float32))
    if loss.forces_weight is None:
        error = jnp.where(pack.there, model(pack) - pack.target, 0.0)
        total, none = jnp.sum(_losses(error, loss.kind)), jnp.zeros(())
        return Sums(total, jnp.sum(jnp.abs(error)), n, forces_error=none, components=components)
    outputs = energies_and_forces(model, pack)
    error = jnp.where(pack.there, outputs.energies - pack.target, 0.0)
    off = jnp.where(pack.numbers[:, None] > 0, outputs.forces - pack.forces, 0.0)
    of_forces = jnp.sum(_losses(off, loss.kind) * shares(pack)[:, None])
    whole = 1.0 + loss.forces_weight
    total = (jnp.sum(_losses(error, loss.kind)) + loss.forces_weight * of_forces) / whole
    return Sums(
        total, jnp.sum(jnp.abs(error)), n, forces_error=jnp.sum(jnp.abs(off)), components=components
    )


def _losses(error: Float[Array, "*any"], kind: str) -> Float[Array, "*any"]:
    """The loss of each error."""
    size = jnp.abs(error)
    if kind == "l1":
        return size
    squares = error * error
    return squares if kind == "mse" else jnp.where(size < 1.0, 0.5 * squares, size - 0.5)


def place(packs: Pack, devices: Mesh) -> Pack:
    """Put packs [I, D, S, ...] from host memory on the devices, D over them.

    Each of several processes passes all packs, and puts those of its own devices on them.
    """
    return jax.tree.map(partial(_put, NamedSharding(devices, SPREAD)), packs)


def replicate(state: TrainingState, devices: Mesh) -> TrainingState:
    """Copy a state to every device."""
    put = partial(_put, NamedSharding(devices, EVERYWHERE))
    return jax.tree.map(lambda x: put(np.asarray(x)), state)


def _put(sharding: NamedSharding, x: np.ndarray) -> Array:
    return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])
