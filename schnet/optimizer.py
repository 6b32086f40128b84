"""AdamW with warm-up, cosine decay and clipped gradients, and the running mean of the weights."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Int

from .config import Optimizer
from .errors import UserError


def optimizer(config: Optimizer, updates: int) -> optax.GradientTransformation:
    """The update rule over a training of so many updates."""
    return optax.chain(
        optax.clip_by_global_norm(config.clip),
        optax.adamw(
            learning_rate(config, updates),
            weight_decay=config.weight_decay,
            mask=lambda model: jax.tree.map(_is_matrix, model),
        ),
    )


def learning_rate(config: Optimizer, updates: int) -> optax.Schedule:
    """Linear warm-up, then a cosine; the rate at each update."""
    if updates < 1:
        raise UserError("the training set holds no pack of molecules: give more data.")
    warmup = min(round(config.warmup_fraction * updates), updates - 1)
    peak = config.learning_rate
    return optax.warmup_cosine_decay_schedule(
        init_value=peak / (warmup + 1),
        peak_value=peak,
        warmup_steps=warmup,
        decay_steps=updates,
        end_value=config.final_fraction * peak,
    )


def averaged(mean: Any, model: Any, step: Int[Array, ""], decay: float) -> Any:
    """The running mean of the weights after a step; young means forget faster, so that they do not
    remember the initial weights."""
    age = step.astype(jnp.float32)
    kept = jnp.minimum(jnp.float32(decay), (1.0 + age) / (10.0 + age))
    return jax.tree.map(
        lambda m, x: kept * m + (1.0 - kept) * x if eqx.is_array(x) else x, mean, model
    )


def _is_matrix(leaf: Float[Array, "..."]) -> bool:
    return leaf.ndim > 1
