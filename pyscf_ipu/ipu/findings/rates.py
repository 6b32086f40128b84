"""What a program does per second, as shares of what the chip can do, and what holds it up."""

from dataclasses import dataclass

from pyscf_ipu.ipu.profile.data import ProfileData, Times


@dataclass(frozen=True)
class Rate:
    """Work and time of a stage, or of the whole program, on all its IPUs; low cycles."""

    cycles: float | int
    flops: float | int
    memory_bytes: float | int
    """Loaded from and stored to the memories of the tiles."""
    exchanged_bytes: float | int
    flops_per_second: float
    bytes_per_second: float
    """Of `memory_bytes`."""
    flops_share: float
    """Of the matrix units' peak."""
    bytes_share: float
    """Of the memories' peak."""
    bound: str
    """"compute", "memory" or "exchange": what would have to be faster.  Exchange, with its syncs,
    if it takes at least half of the cycles; else memory, if loads and stores at their peak rate
    would take longer than the floating-point operations at theirs."""


def rates(profile: ProfileData) -> dict[str, Rate]:
    """Flops, bytes, shares of the peaks and what holds it up: of the whole program ("all"), then of
    every stage that takes time."""
    every = {"all": [x for x in profile.steps() if x[0].kind != "host"]}
    parts = every | profile.grouped("stage")
    return {name: _rate(profile, steps) for name, steps in parts.items()}


def _rate(profile: ProfileData, steps: list[Times]) -> Rate:
    cycles = sum(s.cycles.low * n for s, n in steps)
    compute = sum(s.cycles.low * n for s, n in steps if s.kind == "compute")
    flops = sum(s.flops * n for s, n in steps)
    memory = sum(s.memory_bytes * n for s, n in steps)
    moved = sum(s.moved_bytes * n for s, n in steps)
    per_second = profile.clock_hz / cycles if cycles else 0.0
    at_peak = flops / (profile.peaks.flops * profile.n_tiles)
    loading = memory / (profile.peaks.bytes * profile.n_tiles)
    if cycles and compute <= 0.5 * cycles:
        bound = "exchange"
    else:
        bound = "memory" if loading > at_peak else "compute"
    return Rate(
        cycles=cycles,
        flops=flops,
        memory_bytes=memory,
        exchanged_bytes=moved,
        flops_per_second=flops * per_second,
        bytes_per_second=memory * per_second,
        flops_share=at_peak / cycles if cycles else 0.0,
        bytes_share=loading / cycles if cycles else 0.0,
        bound=bound,
    )
