"""The machine that this runs on: its cores and memory, programs and files on disk, JAX's modes."""
