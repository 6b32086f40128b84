"""Sums over a Profile that its reports share: vertices by type, steps by kind, shares."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyscf_ipu.ipu.profile.data import NOTHING, Cycles, ProfileData, Program, Repeat, balance_of


def chips(profile: ProfileData) -> str:
    """The target and how many of it: "GC200, 1 IPU"."""
    text = f"{profile.target}, {profile.num_ipus} IPU" + ("s" if profile.num_ipus != 1 else "")
    return f"{text}, {profile.replicas} replicas" if profile.replicas > 1 else text


def title(profile: ProfileData) -> str:
    """What was computed, if the profile says so, and the chips."""
    return f"{profile.subject} on {chips(profile)}" if profile.subject else chips(profile)


@dataclass(frozen=True)
class VertexTotal:
    """All compute sets of one vertex type."""

    name: str
    cycles: Cycles
    """Cycles of the busiest tile of every compute set, summed over all runs."""
    runs: float | int
    """Compute sets that ran."""
    instances: float | int
    """Vertices that ran in them."""
    balance: float
    """Mean over busiest tile, weighted by cycles."""
    how: str
    """Where the cycles come from; several sources are joined by "+"."""


def vertex_totals(profile: ProfileData) -> tuple[VertexTotal, ...]:
    """Vertex types by their cycles, the largest first."""
    totals = [
        VertexTotal(
            name=name,
            cycles=sum((s.cycles * n for s, n in uses), NOTHING),
            runs=sum(n for _, n in uses),
            instances=sum(s.vertices * n for s, n in uses),
            balance=balance_of(uses),
            how="+".join(sorted({s.how for s, _ in uses})),
        )
        for name, uses in profile.grouped("name", "compute").items()
    ]
    return tuple(sorted(totals, key=lambda v: -v.cycles.low))


@dataclass(frozen=True)
class Count:
    """Number of times in the program as written, and as executed (see Repeat.count)."""

    written: float | int
    executed: float | int


_KINDS = ("compute", "exchange", "sync", "host")
_PLURALS = ("compute sets", "exchanges", "syncs", "host transfers")


def program_counts(profile: ProfileData) -> dict[str, Count]:
    """Compute sets, exchanges, syncs, host transfers, vertices, loops and their iterations."""
    steps, loops = list(profile.steps()), list(_loops(profile.program, 1))
    pairs: dict[str, list[tuple[float | int, float | int]]] = {
        plural: [(1, n) for s, n in steps if s.kind == kind]
        for kind, plural in zip(_KINDS, _PLURALS, strict=True)
    }
    pairs["vertices"] = [(s.vertices, s.vertices * n) for s, n in steps]
    pairs["loops"] = [(1, n) for _, n in loops]
    pairs["iterations"] = [(x.count, x.count * n) for x, n in loops]
    return {k: Count(sum(a for a, _ in x), sum(b for _, b in x)) for k, x in pairs.items()}


def _loops(program: Program, times: float | int) -> Iterator[tuple[Repeat, float | int]]:
    for x in program:
        if isinstance(x, Repeat):
            yield x, times
            yield from _loops(x.body, times * x.count)


def shares(parts: dict[str, Cycles]) -> dict[str, float]:
    """Each part's fraction of the sum of the low cycles; zeros if there are none."""
    total = sum(c.low for c in parts.values())
    return {k: c.low / total if total else 0.0 for k, c in parts.items()}
