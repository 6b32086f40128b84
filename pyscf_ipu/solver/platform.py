"""What JAX computes on: which algorithms, how a batch runs, and how large it is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyscf_ipu.gpu import GPU as GPU_MACHINE
from pyscf_ipu.host.backend import backend
from pyscf_ipu.host.cores import n_cores
from pyscf_ipu.kohn_sham.batch import sequential, side_by_side
from pyscf_ipu.kohn_sham.program import Driver, Program
from pyscf_ipu.scf.machine import HOST, Machine
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.solver.memory import (
    available_bytes,
    device_bytes,
    program_bytes,
    result_bytes,
    side_by_side_bytes,
)

MEMORY_SHARE = 0.8
"""Part of the memory that one call may need."""


@dataclass(frozen=True)
class Platform:
    """A kind of device."""

    machine: Machine
    """Its algorithms."""
    driver: Callable[[Program], Driver]
    """Runs the molecules of a batch."""
    batch_sizes: tuple[tuple[int, int], ...]
    """(AOs at most, conformers per call): larger batches gain nothing."""
    fewer: tuple[int, ...]
    """Sizes of further programs, for so few molecules that most of a batch would be padding."""
    threads: Callable[[], int]
    """How many calls to make at a time."""
    padding_is_free: bool
    """Whether a call with fewer molecules takes less time, so that lists can be cut at will."""
    call_bytes: Callable[[Shape, Settings, int], int]
    """Estimated peak memory of a call, from the number of its molecules."""
    room: Callable[[], int]
    """Bytes of memory where it computes."""

    def batch_size(self, shape: Shape, settings: Settings) -> int:
        """The number of `batch_sizes`, halved until a call fits into MEMORY_SHARE of the memory."""
        size = next((n for limit, n in self.batch_sizes if shape.n_ao <= limit), 1)
        room = MEMORY_SHARE * self.room()
        while size > 1 and self.call_bytes(shape, settings, size) > room:
            size //= 2
        return size

    def call_size(self, count: int, batch_size: int) -> int:
        """For how many molecules the program is made that computes `count` of them."""
        return next((n for n in self.fewer if count <= n < batch_size), batch_size)


def platform() -> Platform:
    """That of the device in effect."""
    return PLATFORMS.get(backend(), OTHER)


def _one_after_another(shape: Shape, settings: Settings, size: int) -> int:
    """What one molecule needs while it runs, and what is kept of every molecule of a batch."""
    return program_bytes(shape, settings) + size * result_bytes(shape, settings)


_ACCELERATOR: dict[str, Any] = {
    "padding_is_free": False,
    "batch_sizes": ((10_000, 512),),
    "fewer": (1, 64),
    "threads": lambda: 2,  # one prepares molecules and results while the other's are computed
    "room": lambda: device_bytes(),
}
PLATFORMS = {
    "cpu": Platform(
        HOST,
        sequential,
        ((64, 16), (100, 8), (160, 2)),
        (),
        lambda: n_cores(),
        True,
        _one_after_another,
        lambda: available_bytes(),
    ),
    "gpu": Platform(
        GPU_MACHINE,
        side_by_side,
        call_bytes=partial(side_by_side_bytes, kernels=True),
        **_ACCELERATOR,
    ),
}
OTHER = Platform(
    HOST, side_by_side, call_bytes=partial(side_by_side_bytes, kernels=False), **_ACCELERATOR
)
"""Accelerators that Triton does not know: nothing but XLA."""
