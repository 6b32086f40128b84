"""JAX's Pallas, imported where a kernel first needs it: that takes a third of a second."""

from importlib import import_module


def __getattr__(name: str):
    """A name of `jax.experimental.pallas`, or its backend `triton`."""
    if name.startswith("__"):
        raise AttributeError(name)
    import_module("jax.experimental.pallas.triton")
    return getattr(import_module("jax.experimental.pallas"), name)
