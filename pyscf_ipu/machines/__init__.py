"""Where machines differ: a `Machine` has their algorithms; kernels for GPUs (Pallas, Triton)."""
