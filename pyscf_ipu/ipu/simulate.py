"""`simulate`: run a function, and price the same program for an IPU.

The outputs are those of the plain jitted call.  The price comes from the function's jaxpr: every
step once, times how often it really ran, which a second run with counters tells.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pyscf_ipu.ipu.errors import TileMemoryError
from pyscf_ipu.ipu.exchange import host_seconds
from pyscf_ipu.ipu.pricing import Loop, Pricer, Rule
from pyscf_ipu.ipu.profile import Memory, Profile, Repeat, Step
from pyscf_ipu.ipu.rules import RULES
from pyscf_ipu.ipu.target import Target
from pyscf_ipu.ipu.trips import Path, run_counts

Simulated = Callable[..., tuple[Any, Profile]]


def simulate(
    fn: Callable[..., Any],
    target: Target,
    num_ipus: int = 1,
    strict: bool = False,
    rules: Mapping[str, Rule] = RULES,
) -> Simulated:
    """A function that returns `(fn(*args), Profile)`.

    fn        any JAX function of arrays; traced once for each set of argument shapes.
    target    one chip of `pyscf_ipu.ipu.TARGETS`; `num_ipus` of them share the program.
    strict    raise TileMemoryError if a tile's memory overflows, instead of reporting it.
    rules     cost of each primitive; `RULES | {...}` for primitives of your own.

    Raises Float64OnIpuError, naming the operation, if the program computes in float64, and
    ValueError for fewer than one IPU or a tile that the target does not have.
    """
    if num_ipus < 1:
        raise ValueError(f"num_ipus={num_ipus}: give 1 or more")
    programs: dict[Any, _Priced] = {}
    compiled = jax.jit(fn)

    def run(*args: Any) -> tuple[Any, Profile]:
        leaves, tree = jax.tree.flatten(args)
        key = tree, tuple((np.shape(x), jnp.result_type(x)) for x in leaves)
        if key not in programs:
            programs[key] = _Priced(fn, args, target, num_ipus, rules)
        found = programs[key].profile(leaves)
        if strict and found.memory.overflowing.size:
            worst = found.memory.largest[0]
            raise TileMemoryError(
                f"{found.memory.overflowing.size} tiles need up to {found.memory.max_tile_bytes} "
                f"bytes and have {found.memory.limit_bytes}; the largest buffer there is "
                f"{worst.name!r} ({worst.tile_bytes} bytes): use more IPUs or a smaller molecule"
            )
        return compiled(*args), found

    return run


def memory_of(
    fn: Callable[..., Any],
    target: Target,
    num_ipus: int,
    *args: Any,
    rules: Mapping[str, Rule] = RULES,
) -> Memory:
    """What `fn(*args)` would hold on every tile; nothing is compiled or run."""
    return _Priced(fn, args, target, num_ipus, rules).memory


class _Priced:
    """A program priced up to its trip counts."""

    def __init__(
        self, fn: Callable[..., Any], args: tuple, target: Target, num_ipus: int,
        rules: Mapping[str, Rule],
    ) -> None:  # fmt: skip
        closed = jax.make_jaxpr(fn)(*args)
        self.target, self.num_ipus = target, num_ipus
        self.n_tiles = int(target.tiles_per_ipu) * num_ipus
        self._closed = closed
        p = self.pricer = Pricer(target, self.n_tiles, rules)
        ins = [p.new(v.aval, "argument") for v in closed.jaxpr.invars]
        outs = p.block(closed.jaxpr, closed.consts, ins, ())
        p.flush()
        moved = [v.size * v.itemsize for v in (*ins, *outs)]
        self.host = host_seconds(target, float(sum(moved)))
        self.memory = p.memory.report(int(target.memory_bytes_per_tile))

    @functools.cached_property
    def _counts(self) -> Callable[..., dict[Path, int]]:
        return run_counts(self._closed)

    def profile(self, leaves: list[Any]) -> Profile:
        counts = self._counts(*leaves)
        unknown: Counter[str] = Counter()
        for name, loops in self.pricer.unknown:
            unknown[name] += round(_entries(loops, counts))
        load = np.zeros(self.n_tiles)
        program = self._resolved(self.pricer.steps, counts, 1.0, [], load)
        return Profile(
            target=self.target.name,
            num_ipus=self.num_ipus,
            n_tiles=self.n_tiles,
            clock_hz=float(self.target.tile_clock_frequency),
            program=program,
            memory=self.memory,
            tile_compute=load,
            host_seconds=self.host,
            unknown_ops=dict(unknown),
            notes=self._notes(),
        )

    def _resolved(
        self,
        steps: list[Any],
        counts: dict[Path, int],
        times: float | int,
        outer: list[Path | int],
        load: np.ndarray,
    ) -> tuple[Step | Repeat, ...]:
        """Loops with their trip counts; adds up the compute cycles of every tile in `load`."""
        out: list[Step | Repeat] = []
        for step in steps:
            if isinstance(step, Loop):
                n = _times(step.trips, counts, outer)
                inner = [*outer, step.trips]
                body = self._resolved(step.body, counts, times * n, inner, load)
                if n and body:
                    out.append(Repeat(n, body, step.name))
            else:
                out.append(step)
                if id(step) in self.pricer.loads:
                    load += times * self.pricer.loads[id(step)]
        return tuple(out)

    def _notes(self) -> tuple[str, ...]:
        notes = ["ordinary arrays lie in Poplar's linear mapping; rearrangements are views"]
        if self.num_ipus > 1:
            notes.append("links between IPUs are priced by their bandwidth alone")
        return tuple(notes)


def _times(trips: Path | int, counts: dict[Path, int], outer: list[Path | int]) -> float | int:
    """Trips per entry of a loop: a counted one was summed over all entries of its outer loops."""
    if isinstance(trips, int):
        return trips
    entries = _entries(outer, counts)
    n = counts[trips] / entries if entries else 0.0
    return int(n) if n == int(n) else n


def _entries(loops: list[Path | int], counts: dict[Path, int]) -> float | int:
    """How often the body of nested loops ran in all, the outermost first."""
    return math.prod(_times(x, counts, loops[:i]) for i, x in enumerate(loops))
