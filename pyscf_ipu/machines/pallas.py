"""JAX's Pallas, imported where a kernel first needs it: that takes a third of a second."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """A name of `jax.experimental.pallas`, or its backend `triton`."""
    pallas = import_module("jax.experimental.pallas")
    return import_module(f"{pallas.__name__}.triton") if name == "triton" else getattr(pallas, name)
