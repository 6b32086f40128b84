"""AdamW, its learning rate and its clipped gradients, and the running mean of the weights."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Int, PyTree

from schnet.errors import UserError
from schnet.network.config import Optimizer


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
