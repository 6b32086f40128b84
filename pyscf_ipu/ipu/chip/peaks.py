"""The most that a chip can do: what figures are a share of."""

from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.profile.data import Peaks


def peaks(target: Target, half: bool = False) -> Peaks:
    """The flops of one tile in a cycle: with float16 products, or with float32 alone."""
    unit = target.fp16_amp_flops_per_cycle if half else target.fp32_amp_flops_per_cycle
    load, store = target.interleaved_load_bytes_per_cycle, target.store_bytes_per_cycle
    return Peaks(
        flops=float(unit),
        bytes=float(load) + float(store),
        exchange_bytes=float(target.exchange_bytes_per_cycle),
        ipus_per_machine=int(target.ipus_per_machine),
    )
