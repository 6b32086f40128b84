"""Values and the steps that work on them: the vocabulary of the rules in `rules.py`.

A rule fetches what has to travel, then adds to a compute set.  Exchanges that wait for the same
compute set are one exchange behind one sync; vertices that do not need each other's results share
a compute set, as a Poplar programmer would have them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import cast

import numpy as np
from jax import Array
from jax.core import AbstractValue, ShapedArray

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.ipu.chip.collectives import collective_cycles
from pyscf_ipu.ipu.chip.quantity import Quantity
from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.chip.transfer import exchange_cycles, link_cycles, sync_cost
from pyscf_ipu.ipu.profile.data import Cycles, Origin, Step
from pyscf_ipu.ipu.steps.compute_sets import (
    NO_WORK,
    ComputeSet,
    ElementwiseSet,
    PricedStep,
    Work,
    compute_step,
)
from pyscf_ipu.ipu.steps.places import Place, linear
from pyscf_ipu.ipu.steps.tile_memory import (
    BYTES_PER_INSTRUCTION,
    CONTROL_BYTES,
    EXCHANGE_BYTES,
    INSTRUCTIONS_PER_EQUATION,
    LIBRARY_BYTES,
    Held,
    Tracker,
    Trackers,
    release,
    use,
)
from pyscf_ipu.ipu.steps.values import Either, Loop, Value
from pyscf_ipu.ipu.vertices.trip_counts import LANES, Counts, Path

EXCHANGE_ORIGIN = "formula", "bytes in and out of the busiest tile over the exchange's rate"
REDUCE_ORIGIN = "estimated", "a ring over the rates of the links; high with a sync for each step"
STREAMED = "streaming"
LINK_ORIGIN = "estimated", "bytes from IPU to IPU over the rates of the links, no latency"


class Steps:
    """The program as it grows."""

    def __init__(
        self, target: Target, n_tiles: int, replicas: int = 1, stage_ipus: int = 1
    ) -> None:
        self.target, self.n_tiles, self.replicas = target, n_tiles, replicas
        self.workers = int(target.num_worker_contexts)
        self.memory = Trackers(n_tiles, stage_ipus)
        self.steps: list[PricedStep | Loop | Either] = []
        self.scope: Path = ()
        """The block that is being priced: of a loop or a branch; () is the program."""
        self.measures: dict[Path, list[tuple[Path, Callable[[Counts], Array]]]] = {}
        self.stage = ""
        self._open: ComputeSet | None = None
        self._incoming = np.zeros(n_tiles)
        self._outgoing = np.zeros(n_tiles)
        self._dying: list[tuple[Held, ...]] = []
        self.streamed_bytes = 0.0
        """Kept in the streaming memory of a machine."""
        self.ipu = 0
        """The IPU of the stage that is being priced."""
        self.stage_ipus = stage_ipus
        """IPUs of a replica, if each has a stage of its own."""
        self.phase = "forward"
        self.collecting: tuple[str, str] | None = None
        """A collective, by its name and stage, that waits for more of its kind."""
        self._collected: dict[int, float] = {}

    def new(self, aval: AbstractValue, name: str, place: Place | None = None) -> Value:
        """A variable in memory: at `place`, or in the linear mapping."""
        array = cast(ShapedArray, aval)
        size, itemsize = array.size, array.dtype.itemsize
        place = place or linear(size, itemsize, self.n_tiles)
        held = self.tracker.allocate(name, self.stage, place.bytes(itemsize))
        return Value(place, size, itemsize, buffers=(held,), ipu=self.ipu, made_in=self._open)

    def constant(self, value: object, distinct: int = 0) -> Value:
        """A value known at compile time, which is part of the code that uses it.

        It has this many `distinct` elements; with 0 all may differ.
        """
        array = np.asarray(value)
        place = Place(("constant",), np.zeros(self.n_tiles))
        return Value(place, array.size, array.dtype.itemsize, constant=array, unique=distinct)

    def note_constant(self, value: Value, elements: np.ndarray) -> None:
        """Count a table of floating-point numbers that vertices read: [n_tiles] elements of it.

        Equal tables are one.  Numbers by themselves are in the code, and so are indices.
        """
        array = value.constant
        if array is None or value.distinct <= 1 or not np.issubdtype(array.dtype, np.floating):
            return
        stored = array.strides == () or any(array.strides)
        key = (array.dtype.str, array.shape, array.tobytes()) if stored else value
        self.tracker.add_constant(key, np.minimum(elements, value.distinct) * value.itemsize)

    def view(self, ins: list[Value], aval: AbstractValue) -> Value:
        """The elements of other variables in another order; costs nothing until it is used."""
        array = cast(ShapedArray, aval)
        used = [v for v in ins if v.constant is None]
        for v in used:
            use(v.buffers)
        return Value(
            place=Place(("view", object()), np.zeros(self.n_tiles)),
            size=array.size,
            itemsize=array.dtype.itemsize,
            buffers=tuple(h for v in used for h in v.buffers),
            view=True,
            unique=min(sum(v.distinct for v in used), array.size) or 1,
            source=sum((v.taken_from() for v in used), np.zeros(self.n_tiles)),
            ipu=max((v.ipu for v in used), default=self.ipu),
            made_in=next((v.made_in for v in used if v.made_in is self._open), None),
        )

    @property
    def tracker(self) -> Tracker:
        """The memory of the present IPU."""
        return self.memory.each[self.ipu]

    def fetch(self, value: Value, incoming: np.ndarray, kept: bool = False) -> None:
        """Let bytes [n_tiles] of a variable come to the tiles before the next compute set.

        They live as long as that set, unless they are `kept`: then another variable has them.
        A tile that has a variable of one number gets nothing.
        """
        if value.constant is not None:
            return
        if value.place.key[0] == STREAMED:
            raise UsageError(
                "the program reads an array that is in streaming memory: bring it back with "
                "streaming_load first"
            )
        source = value.taken_from()
        if value.distinct == 1:
            incoming = np.where(source > 0, 0.0, incoming)
            if not incoming.any():
                return  # perhaps it is still in a register
        if not self.ready(value):
            self.flush()
        total = float(incoming.sum())
        available = float(source.sum())
        if total == 0.0 or available == 0.0:
            return
        # A tile sends each of its bytes once; any number of tiles may listen.
        self.move(incoming, source * min(1.0, total / available), kept)

    def move(self, incoming: np.ndarray, outgoing: np.ndarray, kept: bool = False) -> None:
        """Let bytes [n_tiles] that a rule counted itself come and go."""
        if not kept:
            self.tracker.receive(self.stage, incoming)
        self._incoming = self._incoming + incoming
        self._outgoing = self._outgoing + outgoing

    def let_go(self, value: Value) -> None:
        """A variable is dead, as soon as the vertices of the open compute set have run."""
        if type(self._open) is ComputeSet:
            self._dying.append(value.buffers)
        else:
            release(value.buffers)

    def note_code(self, key: Hashable, here: np.ndarray, operations: int) -> None:
        """Code of a number of operations, once on every tile `here` [n_tiles]."""
        nbytes = operations * INSTRUCTIONS_PER_EQUATION * BYTES_PER_INSTRUCTION
        self.tracker.add_code(key, here, nbytes)

    def in_block(self, path: Path) -> Path:
        """Begin another block, in a compute set of its own; returns the one before."""
        if self._open is not None and self._open.counted:
            self.flush()
        before, self.scope = self.scope, path
        return before

    def vertices(self) -> ComputeSet:
        """The compute set that the next vertices join, side by side with what is in it."""
        if type(self._open) is not ComputeSet or self._open.stage != self.stage:
            self.flush()
            self._open = ComputeSet(self.target, self.n_tiles, self.stage)
        return self._open

    def elementwise(self, place: Place, half: bool = False) -> ElementwiseSet:
        """The fused elementwise vertex that the next operation joins, of float16 if `half`."""
        current = self._open
        if (
            isinstance(current, ElementwiseSet)
            and (current.place.key, current.stage) == (place.key, self.stage)
            and not self._incoming.any()
        ):
            return current
        self.flush()
        self._open = ElementwiseSet(self.target, self.n_tiles, self.stage).start(place, half)
        return self._open

    def ready(self, value: Value) -> bool:
        """Whether a variable does not come from the compute set that is still open."""
        return value.made_in is None or value.made_in is not self._open

    def transfer(self) -> None:
        """The exchange of all that was fetched, behind a sync."""
        if not self._incoming.any():
            return
        incoming, outgoing = self._incoming, self._outgoing
        self._incoming, self._outgoing = np.zeros(self.n_tiles), np.zeros(self.n_tiles)
        ipus = self.n_tiles // int(self.target.tiles_per_ipu)
        cycles = exchange_cycles(self.target, incoming, outgoing)
        crossing = _between(incoming, outgoing, ipus)
        links = link_cycles(self.target, crossing)
        sync = sync_cost(self.target, ipus)
        took_part = (incoming > 0) | (outgoing > 0)
        self.tracker.fixed["Internal Exchange Code"] += EXCHANGE_BYTES * took_part
        self.sync("sync", sync)
        tiles, moved = int(took_part.sum()), float(incoming.sum())
        self.other("exchange", "exchange", cycles, origin=EXCHANGE_ORIGIN, tiles=tiles, moved=moved)
        if links:
            moved = float(crossing.sum() - crossing.trace())
            self.other("exchange", "links between IPUs", links, origin=LINK_ORIGIN, moved=moved)

    def collect(self, name: str, nbytes: float, ipu: int) -> None:
        """Let replicas exchange `nbytes` of an IPU each.  Successive ones of one kind are one."""
        if self.collecting not in (None, (name, self.stage)):
            self.flush()
        self.collecting = name, self.stage
        self._collected[ipu] = self._collected.get(ipu, 0.0) + nbytes

    def _collectives(self) -> None:
        if self.collecting is None:
            return
        (name, stage), self.collecting = self.collecting, None
        here, self._collected, collected = (self.stage, self.ipu), {}, self._collected
        sync = self.target.global_sync_cycles
        ipus = self.stage_ipus * (self.n_tiles // int(self.target.tiles_per_ipu))
        for ipu, nbytes in collected.items():
            self.stage, self.ipu = stage, ipu
            self.sync("sync of all replicas", sync)
            # The IPUs of a replica share its links, as if all had as much as this one.
            shared, of = nbytes * self.stage_ipus, {"replicas": self.replicas, "num_ipus": ipus}
            cycles = collective_cycles(self.target, name, shared, **of)
            self.other("exchange", name, cycles, origin=REDUCE_ORIGIN, moved=nbytes)
        self.stage, self.ipu = here

    def library(
        self, name: str, load: np.ndarray, source: str, how: str = "formula", work: Work = NO_WORK
    ) -> None:
        """A compute set of library vertices, behind the exchange of what was fetched.

        Its cycles [n_tiles] on each tile come from a formula or document, known by one of `HOWS`.
        """
        self.flush()
        self.tracker.add_code(("library", name), load > 0, LIBRARY_BYTES)
        both, vertices = np.stack([load, load]), int((load > 0).sum())
        self._append(
            compute_step(name, self.stage, both, vertices=vertices, origin=(how, source), work=work)
        )

    def other(
        self,
        kind: str,
        name: str,
        cycles: Cycles | float,
        origin: Origin,
        tiles: int = 0,
        moved: float = 0.0,
    ) -> None:
        """A sync or an exchange of `moved` bytes, on all tiles or on a number of them."""
        both = cycles if isinstance(cycles, Cycles) else Cycles(cycles, cycles)
        step = Step(kind, name, self.stage, cycles=both, tiles=tiles or self.n_tiles)
        how, source = origin
        step = dataclasses.replace(step, moved_bytes=moved, how=how, source=source)
        self._append(PricedStep(step))

    def sync(self, name: str, delay: Quantity) -> None:
        """Wait for all tiles, or all IPUs."""
        self.other("sync", name, float(delay), origin=(delay.how, delay.source))

    def stream(self, value: Value, store: bool) -> Value:
        """Move a variable to streaming memory or back, by the rate that a machine's IPUs share."""
        self.flush()
        nbytes = float(value.size * value.itemsize)
        ipus = max(1, self.n_tiles // int(self.target.tiles_per_ipu))
        sharing = max(1, int(self.target.ipus_per_machine) // ipus)
        rate = self.target.streaming_bytes_per_second
        cycles = nbytes / float(rate) * float(self.target.tile_clock_frequency)
        cycles *= min(self.replicas * self.stage_ipus, sharing)
        name = "store to streaming memory" if store else "load from streaming memory"
        self.other("exchange", name, cycles, origin=(rate.how, rate.source), moved=nbytes)
        if not store:
            place = value.home or linear(value.size, value.itemsize, self.n_tiles)
            held = self.tracker.allocate("streaming", self.stage, place.bytes(value.itemsize))
            return Value(place, value.size, value.itemsize, buffers=(held,), ipu=self.ipu)
        self.streamed_bytes += nbytes * min(self.replicas, max(1, sharing // self.stage_ipus))
        return self.off_chip(value)

    def off_chip(self, value: Value) -> Value:
        """The variable in streaming memory, where it takes no memory of the tiles."""
        nowhere = Place((STREAMED,), np.zeros(self.n_tiles))
        home = value.kept_place()
        return Value(nowhere, value.size, value.itemsize, ipu=self.ipu, home=home)

    def cross(self, value: Value) -> None:
        """Bring a variable of another stage's IPU to this one, over the links."""
        where = linear(value.distinct, value.itemsize, self.n_tiles).bytes(value.itemsize)
        copy = self.tracker.allocate(f"from IPU {value.ipu}", self.stage, where)
        for held in value.buffers[:1]:
            held.copies.append(copy)
        if self.phase == "forward":
            self.memory.received(self.ipu, where)
        nbytes = float(value.distinct * value.itemsize)
        traffic = np.zeros((max(value.ipu, self.ipu) + 1,) * 2)
        traffic[value.ipu, self.ipu] = nbytes
        name = f"IPU {value.ipu} to IPU {self.ipu}"
        self.sync("sync", self.target.global_sync_cycles)
        links = link_cycles(self.target, traffic)
        self.other("exchange", name, links, origin=LINK_ORIGIN, moved=nbytes)

    def flush(self) -> None:
        """End the open compute set."""
        current, self._open = self._open, None
        if current is not None:
            step = current.step()
            if isinstance(current, ElementwiseSet):
                fused = "fused", *current.operations
                self.note_code(fused, current.place.elements > 0, len(fused))
            if type(current) is ComputeSet:
                self.transfer()  # what its vertices fetched comes first
            if current.counted:
                of_block = self.measures.setdefault(self.scope, [])
                step = step._replace(measure=(*self.scope, LANES - 1 - len(of_block)))
                of_block.append((step.measure, current.measured))
            self._append(step)
        self.tracker.next_set(type(current) is ComputeSet)
        dying, self._dying = self._dying, []
        for buffers in dying:
            release(buffers)
        self.transfer()
        self._collectives()

    def _append(self, priced: PricedStep) -> None:
        if priced.load.size:
            self.tracker.fixed["Control Code"] += CONTROL_BYTES * (priced.load > 0)
        if self.ipu or self.phase != "forward":
            step = dataclasses.replace(priced.step, ipu=self.ipu, phase=self.phase)
            priced = priced._replace(step=step)
        self.steps.append(priced)


def _between(incoming: np.ndarray, outgoing: np.ndarray, ipus: int) -> np.ndarray:
    """[ipus, ipus] bytes from IPU to IPU.

    What a tile receives comes from all IPUs in proportion to what they send.  An IPU sends no byte
    twice to the same other one.
    """
    arriving = incoming.reshape(ipus, -1).sum(axis=1)
    sent = outgoing.reshape(ipus, -1).sum(axis=1)
    share = sent / sent.sum() if sent.sum() else sent
    return np.minimum(sent[:, None], share[:, None] * arriving[None])
