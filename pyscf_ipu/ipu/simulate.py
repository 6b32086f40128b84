"""`simulate`: run a function, and price the same program for an IPU.

The outputs are those of the plain jitted call.  The price comes from the function's jaxpr: every
step once, times how often it ran, which a second run counts.
"""

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.chip.transfer import host_seconds
from pyscf_ipu.ipu.pricing.on_ipu import first_uses, marks
from pyscf_ipu.ipu.pricing.pricer import AVAILABLE, Pricer, Pricing, Rule
from pyscf_ipu.ipu.pricing.rules import RULES
from pyscf_ipu.ipu.profile.data import NOTHING, Cycles, MicroBatches, Program, Repeat, Step, flat
from pyscf_ipu.ipu.profile.regions import Memory
from pyscf_ipu.ipu.report.profile import Profile
from pyscf_ipu.ipu.steps.compute_sets import PricedStep
from pyscf_ipu.ipu.steps.steps import Either, Loop
from pyscf_ipu.ipu.steps.streams import ALL_TRAVELS, UNKNOWN, Home, Moved, Streams, host_steps
from pyscf_ipu.ipu.vertices.trip_counts import Measures, Path, RunCounts, run_counts

NOTES = (
    "ordinary arrays lie in Poplar's linear mapping; rearrangements are views",
    "links between IPUs are priced by their bandwidth, because no latency of them is published",
)


def simulate(
    fn: Callable[..., Any],
    target: Target,
    num_ipus: int = 1,
    strict: bool = False,
    rules: Mapping[str, Rule] = RULES,
    *,
    replicas: int = 1,
    resident: Collection[int] = (),
    overlap: bool = False,
    available_memory_proportion: float = AVAILABLE,
) -> Callable[..., tuple[Any, Profile]]:
    """A function that returns `(fn(*args), Profile)`.

    Args:
        fn: Any JAX function of arrays; traced once for each set of argument shapes.
        target: A chip of `pyscf_ipu.ipu.TARGETS`, or a system such as `target("bow-pod16")`.
        num_ipus: IPUs of the program: each layer is spread over all their tiles (sharding), or, if
            the program names IPUs (`on_ipu`), each stage has one of them (pipelining).
        strict: Raise an error if memory overflows instead of reporting it: a tile's, its part that
            code can run from, its interleaved part, or the machine's streaming memory.
        rules: Cost of each primitive; `RULES | {...}` for primitives of your own.
        replicas: Copies of the program, each with `num_ipus` IPUs and its share of the data.  `fn`
            and its arguments are those of one copy; it exchanges data with the others by the
            collectives of `jax.shard_map`, over a mesh of one device or one for each replica.
        resident: Numbers of arguments that stay on the IPUs from call to call, such as weights.
            A result of the same shapes takes their place, so it stays, too.
        overlap: Traffic with the host runs beside the program, on tiles kept for that.
        available_memory_proportion: Share of a tile's memory that operands and result of one matrix
            product may take; a larger product runs in parts.

    Raises:
        DtypeOnIpuError: The program computes in a dtype without arithmetic, such as int8; for
            float64 a Float64OnIpuError, for bfloat16 a BFloat16OnIpuError.  It names the operation.
        UnknownEquation: This version of JAX writes loops, branches or calls in an unknown way.
        TypeError: `target` is the name of one, or a number of IPUs is not a whole one.
        TileMemoryError: With `strict`, if a tile's memory overflows.
        UsageError: `available_memory_proportion` is not above 0 and at most 1, there is less than
            one IPU or replica or more than the system has, `resident` names an argument that is
            not there, or the program uses a tile that the target does not have.
    """
    _check(target, num_ipus, replicas, share=available_memory_proportion)
    streams = Streams(frozenset(resident), overlap)
    how = Pricing(rules, replicas, available_memory_proportion)
    programs: dict[Hashable, _Priced] = {}
    compiled = jax.jit(fn)

    def run(*args: object) -> tuple[Any, Profile]:
        leaves, tree = jax.tree.flatten(args)
        key = tree, tuple((np.shape(x), jnp.result_type(x)) for x in leaves)
        if key not in programs:
            closed, out = jax.make_jaxpr(fn, return_shape=True)(*args)
            moved = streams.bytes_of(args, out)
            programs[key] = _Priced(closed, target, num_ipus, how=how, moved=moved)
        price = programs[key].profile(leaves)
        if strict:
            price.memory.check()
        return compiled(*args), price

    return run


def _check(target: object, num_ipus: int, replicas: int, share: float = AVAILABLE) -> None:
    """Refuse a name instead of a target, IPUs that it does not have, and no share of memory."""
    if not 0.0 < share <= 1.0:
        raise UsageError(
            f"available_memory_proportion={share}: give a share of a tile's memory above 0 and at "
            "most 1"
        )
    if not isinstance(target, Target):
        raise TypeError(
            f"a Target is needed, not a {type(target).__name__}: pyscf_ipu.ipu.target('bow') "
            "finds one by its name"
        )
    target.check_ipus(num_ipus, replicas)


def profile_of(
    fn: Callable[..., object],
    target: Target,
    *args: object,
    num_ipus: int = 1,
    replicas: int = 1,
    streams: Streams = ALL_TRAVELS,
    available_memory_proportion: float = AVAILABLE,
) -> Profile:
    """The price of `fn(*args)` without its results, as of `simulate`.

    The program runs only if it has loops or branches that depend on data, once, to count them.
    """
    _check(target, num_ipus, replicas, share=available_memory_proportion)
    closed, out = jax.make_jaxpr(fn, return_shape=True)(*args)
    moved = streams.bytes_of(args, out)
    how = Pricing(RULES, replicas, available_memory_proportion, quick=True)
    return _Priced(closed, target, num_ipus, how=how, moved=moved).profile(jax.tree.leaves(args))


def memory_of(
    fn: Callable[..., object],
    target: Target,
    num_ipus: int,
    *args: object,
    rules: Mapping[str, Rule] = RULES,
) -> Memory:
    """The memory of `fn(*args)` on every tile; nothing is compiled or run."""
    return _Priced(jax.make_jaxpr(fn)(*args), target, num_ipus, how=Pricing(rules)).memory


@dataclasses.dataclass(frozen=True)
class TurnPrices:
    """The price of a program before it runs."""

    cycles: Mapping[Path | None, Cycles]
    """On the device, of one turn of each counted loop or branch, without those inside it; by None,
    of what runs once."""
    measured: tuple[Path, ...]
    """Where the counts have cycles that follow from them, ..."""
    measures: Measures
    """... for `with_counts`."""
    memory: Memory
    unknown: frozenset[str]
    """Operations without a price."""


def turn_prices(closed: ClosedJaxpr, target: Target) -> TurnPrices:
    """What a program costs on one IPU, for each turn that `with_counts` counts.

    A batched loop counts in lock-step.
    """
    priced = _Priced(closed, target, 1, how=Pricing(RULES, quick=True))
    p, cycles, measured = priced.pricer, dict[Path | None, Cycles](), list[Path]()
    for site, times, x in _by_turn(p.steps):
        if x.measure:
            measured.append(x.measure)
        else:
            cycles[site] = cycles.get(site, NOTHING) + x.step.cycles * times
    unknown = frozenset(name for name, _ in p.unknown)
    where = tuple(measured)
    return TurnPrices(cycles, where, p.measures, memory=priced.memory, unknown=unknown)


def _by_turn(
    steps: list[PricedStep | Loop | Either], site: Path | None = None, times: int = 1
) -> Iterator[tuple[Path | None, int, PricedStep]]:
    """Steps, and how often one turn of which site runs each."""
    for x in steps:
        if isinstance(x, PricedStep):
            yield site, times, x
        elif isinstance(x, Either):
            yield from _by_turn(x.together, site, times)
        elif isinstance(x.trips, int):
            yield from _by_turn(x.body, site, times * x.trips)
        else:
            yield from _by_turn(x.body, x.trips)


class _Priced:
    """A program priced up to its trip counts."""

    def __init__(
        self,
        closed: ClosedJaxpr,
        target: Target,
        num_ipus: int,
        how: Pricing,
        moved: Moved = UNKNOWN,
    ) -> None:
        self.target, self.num_ipus, self.replicas = target, num_ipus, how.replicas
        self.n_tiles = int(target.tiles_per_ipu) * num_ipus
        self._closed, self._quick = closed, how.quick
        stages = 1 + max(marks(closed.jaxpr), default=-1)
        if stages > num_ipus:
            raise UsageError(
                f"the program has a stage on IPU {stages - 1}, and a replica has num_ipus="
                f"{num_ipus}: give at least {stages}"
            )
        # Stages have an IPU each; without them, all IPUs share every operation.
        per_stage = int(target.tiles_per_ipu) if stages else self.n_tiles
        how = dataclasses.replace(how, stages=num_ipus if stages else 0)
        p = self.pricer = Pricer(target, per_stage, how)
        uses = first_uses(closed.jaxpr) if stages else repeat(None)
        homes = chain(moved.homes, repeat(Home()))
        places = zip(closed.jaxpr.invars, homes, uses, strict=False)
        ins = [p.argument(v.aval, home, first) for v, home, first in places]
        p.ipu = 0
        p.memory.begin()  # of the first micro-batch
        outs = p.block(closed.jaxpr, closed.consts, ins, path=())
        for value, home in zip(outs, moved.results, strict=False):
            if home.off_chip:
                p.go(value.ipu)
                p.stream(value, store=True)
        p.flush()
        self.host = host_seconds(target, moved.into + moved.outof, how.replicas, num_ipus=num_ipus)
        self.streams = host_steps(target, moved, how.replicas, num_ipus=num_ipus)
        dram = target.streaming_memory_bytes
        self.memory = dataclasses.replace(
            p.memory.report(target),
            streaming_bytes=round(p.streamed_bytes),
            streaming_limit_bytes=round(float(dram)) if dram.known else None,
        )

    @functools.cached_property
    def _counts(self) -> Callable[..., RunCounts]:
        return run_counts(self._closed, self._quick, self.pricer.measures)

    def profile(self, leaves: list[object]) -> Profile:
        counts, notes = self._counts(*leaves), list(self.pricer.notes)
        unknown: Counter[str] = Counter()
        links = self.num_ipus > 1 or self.replicas > 1
        for name, loops in self.pricer.unknown:
            unknown[name] += round(_entries(loops, counts))
        load = np.zeros(self.n_tiles)
        resolved = _Resolved(counts, notes)
        program = resolved.program(self.pricer.steps, [], load)
        before, after = self.streams
        program = (*before, *program, *after)
        staged, rounds = self.pricer.staged, self.pricer.rounds or [1]
        profile = Profile(
            target=self.target.name,
            num_ipus=self.num_ipus,
            n_tiles=self.n_tiles,
            clock_hz=float(self.target.tile_clock_frequency),
            program=program,
            memory=self.memory,
            tile_compute=load,
            host_seconds=self.host,
            unknown_ops=dict(unknown),
            notes=(*NOTES[: 1 + links], *dict.fromkeys(notes)),
            replicas=self.replicas,
            staged=staged,
            rounds=(math.prod(rounds[:-1]), rounds[-1]),
            peaks=self.target.peaks(self.pricer.half),
        )
        count = rounds[-1] if self.pricer.rounds else MicroBatches.count
        return profile.scheduled(MicroBatches(count))


class _Resolved:
    """Programs with the counts of one run; it notes down what a batched loop costs."""

    def __init__(self, counts: RunCounts, notes: list[str]) -> None:
        self.counts, self.notes = counts, notes

    def program(
        self, steps: list[PricedStep | Loop | Either], outer: list[Path | int], load: np.ndarray
    ) -> Program:
        """Loops with their trip counts; adds up the compute cycles of every tile in `load`."""
        times = _entries(outer, self.counts)
        out: list[Step | Repeat] = []
        for step in steps:
            if isinstance(step, Loop):
                n = _times(step.trips, self.counts, outer)
                body = self.program(step.body, [*outer, step.trips], load)
                if n and body:
                    out.append(Repeat(n, body, step.name))
            elif isinstance(step, Either):
                out += self._cheaper(step, outer, load)
            else:
                priced = _measured(step, self.counts, times) if step.measure and times else step
                out.append(priced.step)
                if priced.load.size:
                    first = priced.step.ipu * priced.load.size
                    load[first : first + priced.load.size] += times * priced.load
        return tuple(out)

    def _cheaper(self, loop: Either, outer: list[Path | int], load: np.ndarray) -> Program:
        times, before = _entries(outer, self.counts), len(self.notes)
        loads = np.zeros((2, load.size))
        programs = [
            self.program(steps, outer, part)
            for steps, part in zip((loop.apart, loop.together), loads, strict=True)
        ]
        apart, together = (
            sum((s.cycles * n for s, n in flat(x)), NOTHING) * times for x in programs
        )
        best = int(together.low < apart.low)
        if not best:
            del self.notes[before:]  # of loops inside the form that is not priced
        note = (
            f"a loop over a batch of {loop.lanes} is priced {('by lane', 'in lock-step')[best]}: "
            f"{apart.low:,.0f} to {apart.high:,.0f} cycles if each lane ends by itself, "
            f"{together.low:,.0f} to {together.high:,.0f} in lock-step"
        )
        self.notes += [note] if times else []
        load += loads[best]
        return programs[best]


def _measured(priced: PricedStep, counts: RunCounts, times: float | int) -> PricedStep:
    """A compute set with the mean of what its runs measured."""
    low, high, flops, *load = counts[priced.measure].astype(float) / times
    balance = float(np.mean(load) / low) if low else 1.0
    cycles = Cycles(float(low), float(high))
    step = dataclasses.replace(priced.step, cycles=cycles, balance=balance, flops=float(flops))
    return priced._replace(step=step, load=np.array(load))


def _times(trips: Path | int, counts: RunCounts, outer: list[Path | int]) -> float | int:
    """Trips per entry of a loop; counts are sums over all entries of its outer loops."""
    if isinstance(trips, int):
        return trips
    entries = _entries(outer, counts)
    n = float(counts[trips]) / entries if entries else 0.0
    return int(n) if n == int(n) else n


def _entries(loops: list[Path | int], counts: RunCounts) -> float | int:
    """How often the body of nested loops ran in all; `loops` from the outermost on."""
    return math.prod(_times(x, counts, loops[:i]) for i, x in enumerate(loops))
