"""Kernels for GPUs, in Pallas (Triton), and the `Machine` that uses them."""

from pyscf_ipu.gpu.gpu_machine import GPU, has_kernel

__all__ = ["GPU", "has_kernel"]
