"""schnet: a SchNet model in JAX that learns properties of molecules from what `qm1b` generates."""
