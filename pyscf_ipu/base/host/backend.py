"""The kind of device that JAX computes on here and now."""

from typing import Any

import jax
import jax.numpy as jnp


def backend() -> str:
    """ "cpu", "gpu" or another: of `jax.default_device(...)` if one is in effect."""
    chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
    if chosen is None:
        return jax.default_backend()
    name = chosen if isinstance(chosen, str) else chosen.platform
    return "gpu" if name in ("cuda", "rocm") else name


def device() -> Any:
    """The device in effect, also inside `jax.default_device(...)`; not while JAX traces."""
    return next(iter(jnp.zeros(()).devices()))
