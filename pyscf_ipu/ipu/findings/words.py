"""Three findings in words: the first things to look at in a profile."""

from pyscf_ipu.ipu.findings.totals import shares
from pyscf_ipu.ipu.profile.data import ProfileData
from pyscf_ipu.ipu.profile.text import data_size, percent, whole

NEAR = 0.9  # of a limit


def findings(profile: ProfileData) -> tuple[str, ...]:
    """About the balance of the tiles, about syncs and exchange, about memory and code."""
    return _balance(profile), _sync(profile), _memory(profile)


def _balance(profile: ProfileData) -> str:
    """The stage in which waiting for the busiest tile costs the most cycles."""
    stages = profile.grouped("stage", "compute").items()
    lost = {k: sum((1.0 - s.balance) * s.cycles.low * n for s, n in x) for k, x in stages}
    if not lost or not max(lost.values()):
        return "All tiles have equal work in every compute set."
    worst = max(lost, key=lambda name: lost[name])
    balance = profile.balance_by_stage()[worst]
    return (
        f"Worst balanced: {worst}. Its tiles work {percent(balance)} of the time that its busiest "
        f"ones take; even work would save {whole(lost[worst])} cycles, "
        f"{percent(lost[worst] / profile.cycles.low)} of the program."
    )


def _sync(profile: ProfileData) -> str:
    kinds = shares(profile.total_by("kind"))
    times = sum(n for s, n in profile.steps() if s.kind == "sync")
    return (
        f"Sync takes {percent(kinds.get('sync', 0.0))} of the cycles, in {whole(times)} "
        f"{'step' if times == 1 else 'steps'}, and "
        f"exchange {percent(kinds.get('exchange', 0.0))}."
    )


def _memory(profile: ProfileData) -> str:
    memory = profile.memory
    most, limit = memory.max_tile_bytes, memory.limit_bytes
    code, can_run = int(memory.code.max(initial=0)), memory.executable_bytes
    parts = [f"The fullest tile holds {data_size(most)} of {data_size(limit)}"]
    parts[0] += " and overflows" if most > limit else ""
    if can_run is not None:
        state = (
            "more than can run"
            if code > can_run
            else "near the limit"
            if code > NEAR * can_run
            else f"{percent(code / can_run)} of what can run"
        )
        parts.append(f"its code takes up to {data_size(code)} of {data_size(can_run)}, {state}")
    if memory.interleaved_overflowing.size:
        operands = data_size(int(memory.only_interleaved.max()))
        parts.append(
            f"operands of the matrix unit take up to {operands} of "
            f"{data_size(limit - (can_run or 0))} interleaved memory, more than there is"
        )
    return "; ".join(parts) + "."
