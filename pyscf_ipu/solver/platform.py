"""What JAX computes on: which algorithms, how a batch runs, and how large it is."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.host.backend import backend
from pyscf_ipu.base.host.cores import n_cores
from pyscf_ipu.base.host.memory_limit import available_bytes
from pyscf_ipu.kohn_sham.batch import sequential, side_by_side
from pyscf_ipu.kohn_sham.program import Driver, Program
from pyscf_ipu.machines.gpu_machine import GPU as GPU_MACHINE
from pyscf_ipu.machines.machine import HOST, PROCESSOR, Machine
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.shape import Shape, shape_of
from pyscf_ipu.solver.memory import device_bytes, program_bytes, result_bytes, side_by_side_bytes

MEMORY_SHARE = 0.8
"""Part of the memory that one call may need."""


@dataclass(frozen=True, eq=False)
class Platform:
    """A machine that a `Solver` computes on: a kind of device, or a simulated chip.

    Two with one name are equal, also in another process.
    """

    machine: Callable[[Shape], Machine]
    """Its algorithms for the molecules of a shape."""
    driver: Callable[[Program], Driver]
    """Runs the molecules of a batch."""
    batch_sizes: tuple[tuple[int, int], ...]
    """(AOs at most, conformers per call): larger batches gain nothing."""
    fewer: tuple[int, ...]
    """Sizes of further programs, where the padding of a batch is computed in vain; else empty."""
    threads: Callable[[], int]
    """How many calls to make at a time."""
    call_bytes: Callable[..., int]
    """Estimated peak memory of a call: of a shape, settings and a number of molecules; with the
    keyword `forces`, of one that computes forces, too."""
    room: Callable[[], int]
    """Bytes of memory where it computes."""
    name: str = ""
    """What its programs depend on besides JAX's device, for those on disk."""
    level: Callable[[Settings], Settings] = lambda settings: settings
    """The level as it computes it; raises UsageError for one that it cannot."""
    only_energies: str = ""
    """Why it neither makes forces nor follows instabilities, and computes closed shells alone;
    empty if it does."""
    has_float64: bool = True
    """Whether its machine has; see `Settings.numerics_of`."""
    has_prices: bool = False
    """Whether results have the price of their own runs."""
    refuses: Callable[[Shape], str] = lambda shape: ""
    """Why it does not compute molecules of a shape; empty if it does."""

    def __eq__(self, other: object) -> bool:
        named = isinstance(other, Platform) and bool(self.name) and self.name == other.name
        return self is other or named

    def __hash__(self) -> int:
        return hash(self.name) if self.name else id(self)

    @property
    def padding_is_free(self) -> bool:
        """Whether a call with fewer molecules takes less time, so that lists can be cut at will."""
        return not self.fewer

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

    def check(self, forces: bool, stability: bool, open_shell: bool = False) -> None:
        """Raise UsageError if it does not compute this."""
        if self.only_energies and (forces or stability or open_shell):
            what = "forces" if forces else "stability" if stability else "open shells"
            raise UsageError(f"{what}: {self.only_energies}")


def platform() -> Platform:
    """The platform of the device in effect."""
    return PLATFORMS.get(backend(), OTHER)


def size_limit(settings: Settings) -> int:
    """AOs of the largest straight alkane that this machine's memory holds, at least methane's."""
    here = platform()
    room = MEMORY_SHARE * here.room()

    def alkane(n: int) -> Shape:
        numbers = [6] * n + [1] * (2 * n + 2)
        return shape_of(numbers, settings.basis, settings.cart, grid=settings.grid)

    def is_too_large(n: int) -> bool:
        return here.call_bytes(alkane(n), settings, 1) > room

    n = 1
    while not is_too_large(2 * n):
        n *= 2
    n += bisect_left(range(n + 1, 2 * n), True, key=is_too_large)
    return alkane(n).n_ao


def _one_after_another(shape: Shape, settings: Settings, size: int, forces: bool = False) -> int:
    """What one molecule needs while it runs, and what is kept of every molecule of a batch."""
    return program_bytes(shape, settings, forces) + size * result_bytes(shape, settings)


OTHER = Platform(
    lambda shape: HOST,
    side_by_side,
    batch_sizes=((10_000, 512),),
    fewer=(1, 64),
    threads=lambda: 2,  # one prepares molecules and results while the other's are computed
    call_bytes=partial(side_by_side_bytes, kernels=False),
    room=device_bytes,
)
"""Accelerators that Triton does not know: nothing but XLA."""
PLATFORMS = {
    "cpu": Platform(
        lambda shape: PROCESSOR,
        sequential,
        batch_sizes=((64, 16), (100, 8), (160, 2)),
        fewer=(),
        threads=n_cores,
        call_bytes=_one_after_another,
        room=lambda: available_bytes(),
    ),
    "gpu": replace(
        OTHER,
        machine=lambda shape: GPU_MACHINE,
        call_bytes=partial(side_by_side_bytes, kernels=True),
    ),
}
