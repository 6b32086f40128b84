"""AdamW, its learning rate and its clipped gradients, and the running mean of the weights.

For float16 also the scale of the loss, and stochastic rounding of the weights.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jaxtyping import Bool, Float, Int, PRNGKeyArray, PyTree

from schnet.errors import UserError
from schnet.network.config import Optimizer

FIRST_SCALE, LEAST_SCALE, LARGEST_SCALE = 2.0**10, 2.0**-10, 2.0**24
GROWS_AFTER = 200
"""Updates without an overflow after which the scale of the loss is doubled."""
DROPPED_BITS = 13  # of a float32's mantissa, which float16 does not have
LEAST_NORMAL, SUBNORMAL_STEP = 2.0**-14, 2.0**-24  # of float16


class LossScale(eqx.Module):
    """What the loss is multiplied by before it is differentiated in float16.

    It is halved by an overflow, whose update is left out, and doubled after many without one
    (P. Micikevicius et al., Mixed Precision Training, arXiv:1710.03740).
    """

    factor: Float[Array, ""]
    since: Int[Array, ""]
    """Updates since it last changed."""

    @classmethod
    def first(cls) -> "LossScale":
        return cls(jnp.asarray(FIRST_SCALE, jnp.float32), jnp.zeros((), jnp.int32))

    def after(self, finite: Bool[Array, ""]) -> "LossScale":
        """The scale after an update whose gradient was finite, or was not."""
        grown = self.since + 1 >= GROWS_AFTER
        larger = jnp.where(grown, jnp.minimum(2.0 * self.factor, LARGEST_SCALE), self.factor)
        smaller = jnp.maximum(0.5 * self.factor, LEAST_SCALE)
        since = jnp.where(finite & ~grown, self.since + 1, 0)
        return LossScale(jnp.where(finite, larger, smaller), since)


def rounded(model: PyTree, key: PRNGKeyArray) -> PyTree:
    """Weights rounded up or down to float16, with the probability that makes the mean right.

    They stay in arrays of float32 (M. Croci et al., R. Soc. Open Sci. 9, 211631 (2022),
    doi:10.1098/rsos.211631, on stochastic rounding).
    """
    leaves, tree = jax.tree.flatten(model)
    keys = jax.random.split(key, len(leaves))
    return tree.unflatten([_rounded(x, k) for x, k in zip(leaves, keys, strict=True)])


def _rounded(x: Float[Array, "..."], key: PRNGKeyArray) -> Float[Array, "..."]:
    noise = jax.random.bits(key, x.shape, jnp.uint32)
    below = jnp.uint32(2**DROPPED_BITS - 1)
    bits = (lax.bitcast_convert_type(x, jnp.uint32) + (noise & below)) & ~below
    share = (noise & jnp.uint32(2**23 - 1)).astype(jnp.float32) * jnp.float32(2.0**-23)
    small = jnp.floor(x / SUBNORMAL_STEP + share) * jnp.float32(SUBNORMAL_STEP)
    return jnp.where(jnp.abs(x) < LEAST_NORMAL, small, lax.bitcast_convert_type(bits, jnp.float32))


def optimizer(config: Optimizer, updates: int) -> optax.GradientTransformation:
    """The update rule of a training of this many updates."""
    clip = [optax.clip_by_global_norm(config.clip)] if config.clip else []
    return optax.chain(
        *clip,
        optax.adamw(
            learning_rate(config, updates),
            weight_decay=config.weight_decay,
            mask=None if config.decay_biases else _matrices,
        ),
    )


def _matrices(model: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: leaf.ndim > 1, model)


def learning_rate(config: Optimizer, updates: int) -> optax.Schedule:
    """The rate at each update: a linear warm-up, then what `Optimizer.schedule` says."""
    if updates < 1:
        raise UserError("the training set holds no pack of molecules: give more data")
    warmup = config.warmup_updates or round(config.warmup_fraction * updates)
    peak = config.learning_rate
    if config.schedule == "cosine":
        warmup = min(warmup, updates - 1)
        return optax.warmup_cosine_decay_schedule(
            init_value=_first(config, warmup),
            peak_value=peak,
            warmup_steps=warmup,
            decay_steps=updates,
            end_value=config.final_fraction * peak,
        )
    first = _first(config, warmup)

    def rate(step: Any) -> Any:
        # Decays are counted from the first update, as the trainer of arXiv:2311.01135 does.
        step = jnp.asarray(step, jnp.float32)
        rise = first + (peak - first) * step / max(warmup, 1)
        decay = config.rate_decay if config.schedule == "exponential" else 1.0
        return jnp.where(step < warmup, rise, peak * decay ** (step // config.decay_updates))

    return rate


def _first(config: Optimizer, warmup: int) -> float:
    """The rate of the first update."""
    return config.learning_rate * (config.warmup_start or 1 / (warmup + 1))


def averaged(mean: PyTree, model: PyTree, step: Int[Array, ""], decay: float) -> PyTree:
    """The running mean of the weights after a step. A young mean decays faster, so that it forgets
    the initial weights."""
    age = step.astype(jnp.float32)
    kept = jnp.minimum(jnp.float32(decay), (1.0 + age) / (10.0 + age))
    return jax.tree.map(lambda m, x: kept * m + (1.0 - kept) * x, mean, model)
