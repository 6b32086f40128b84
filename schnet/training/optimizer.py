"""AdamW with warm-up, cosine decay and clipped gradients, and the running mean of the weights."""

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Int, PyTree

from schnet.errors import UserError
from schnet.network.config import Optimizer


def optimizer(config: Optimizer, updates: int) -> optax.GradientTransformation:
    """The update rule of a training of this many updates."""
    return optax.chain(
        optax.clip_by_global_norm(config.clip),
        optax.adamw(
            learning_rate(config, updates),
            weight_decay=config.weight_decay,
            mask=lambda model: jax.tree.map(lambda leaf: leaf.ndim > 1, model),  # matrices
        ),
    )


def learning_rate(config: Optimizer, updates: int) -> optax.Schedule:
    """The rate at each update: a linear warm-up, then a cosine."""
    if updates < 1:
        raise UserError("the training set holds no pack of molecules: give more data")
    warmup = min(round(config.warmup_fraction * updates), updates - 1)
    peak = config.learning_rate
    return optax.warmup_cosine_decay_schedule(
        init_value=peak / (warmup + 1),
        peak_value=peak,
        warmup_steps=warmup,
        decay_steps=updates,
        end_value=config.final_fraction * peak,
    )


def averaged(mean: PyTree, model: PyTree, step: Int[Array, ""], decay: float) -> PyTree:
    """The running mean of the weights after a step. A young mean decays faster, so that it forgets
    the initial weights."""
    age = step.astype(jnp.float32)
    kept = jnp.minimum(jnp.float32(decay), (1.0 + age) / (10.0 + age))
    return jax.tree.map(lambda m, x: kept * m + (1.0 - kept) * x, mean, model)
