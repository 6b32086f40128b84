"""Values and the steps that work on them: what the rules of `rules.py` are written with.

A rule fetches what has to travel, then adds to a compute set.  Exchanges that wait for the same
compute set are one exchange behind one sync; vertices that do not need each other's results share
a compute set, as a Poplar programmer would have them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyscf_ipu.ipu.compute import ComputeSet, ElementwiseSet, compute_step
from pyscf_ipu.ipu.exchange import exchange_cycles, link_cycles, sync_cost
from pyscf_ipu.ipu.layout import Place, linear
from pyscf_ipu.ipu.memory import CONTROL_BYTES, EXCHANGE_BYTES, Tracker
from pyscf_ipu.ipu.profile import Cycles, Step
from pyscf_ipu.ipu.target import Target


@dataclass(frozen=True, eq=False)
class Value:
    """A variable.  `constant` is its value if it is known when the program is compiled; `unique`
    how many different elements a view shows; `source` [n_tiles] the bytes it is taken from."""

    place: Place
    size: int
    itemsize: int
    buffers: tuple[int, ...] = ()
    constant: Any = None
    view: bool = False
    unique: int = 0
    source: np.ndarray | None = None
    made_in: object = None

    def bytes(self) -> np.ndarray:
        """What it takes on each tile: [n_tiles]."""
        return self.place.bytes(self.itemsize)

    @property
    def distinct(self) -> int:
        """How many different elements it shows."""
        return self.unique if self.view else self.size

    def kept_place(self) -> Place | None:
        """Its tiles, if a program has put it on tiles; else it lies where it is convenient."""
        on_tiles = not self.view and self.constant is None and self.place.key[0] == "tiles"
        return self.place if on_tiles else None

    def taken_from(self) -> np.ndarray:
        """The bytes that its elements come from, on each tile: [n_tiles]."""
        return self.bytes() if self.source is None else self.source


class Steps:
    """The program as it grows; `loads` holds the cycles of every tile for each compute step."""

    def __init__(self, target: Target, n_tiles: int) -> None:
        self.target, self.n_tiles = target, n_tiles
        self.memory = Tracker(n_tiles)
        self.steps: list[Any] = []
        self.loads: dict[int, np.ndarray] = {}
        self.stage = ""
        self._codes: set[str] = set()
        self._open: ComputeSet | None = None
        self._incoming = np.zeros(n_tiles)
        self._outgoing = np.zeros(n_tiles)

    def new(self, aval: Any, name: str, place: Place | None = None) -> Value:
        """A variable in memory: where it is told to be, or in the linear mapping."""
        size, itemsize = math.prod(aval.shape), aval.dtype.itemsize
        place = place or linear(size, itemsize, self.n_tiles)
        handle = self.memory.allocate(name, self.stage, place.bytes(itemsize))
        return Value(place, size, itemsize, (handle,), made_in=self._open)

    def constant(self, value: Any) -> Value:
        """Something known at compile time: part of the code of whoever uses it."""
        array = np.asarray(value)
        place = Place(("constant",), np.zeros(self.n_tiles))
        return Value(place, array.size, array.dtype.itemsize, constant=array)

    def view(self, ins: list[Value], aval: Any) -> Value:
        """The elements of other variables in another order; costs nothing until it is used."""
        size = math.prod(aval.shape)
        used = [v for v in ins if v.constant is None]
        for v in used:
            self.memory.use(v.buffers)
        total = sum((v.taken_from() for v in used), np.zeros(self.n_tiles))
        unique = sum(v.distinct for v in used)
        return Value(
            Place(("view", object()), np.zeros(self.n_tiles)), size, aval.dtype.itemsize,
            tuple(h for v in used for h in v.buffers), view=True, unique=min(unique, size) or 1,
            source=total, made_in=next((v.made_in for v in used if v.made_in is self._open), None),
        )  # fmt: skip

    def fetch(self, value: Value, incoming: np.ndarray) -> None:
        """Bytes of a variable that come to the tiles before the next compute set."""
        if value.constant is not None:
            return
        if not self.ready(value):
            self.flush()
        total = float(incoming.sum())
        source = value.taken_from()
        there = float(source.sum())
        if total == 0.0 or there == 0.0:
            return
        # A tile sends each of its bytes once; any number of tiles may listen.
        self._incoming = self._incoming + incoming
        self._outgoing = self._outgoing + source * min(1.0, total / there)

    def move(self, incoming: np.ndarray, outgoing: np.ndarray) -> None:
        """Bytes that a rule has counted itself."""
        self._incoming = self._incoming + incoming
        self._outgoing = self._outgoing + outgoing

    def note_code(self, name: str, code: np.ndarray) -> None:
        """Code of a vertex, once on every tile that runs it."""
        if name not in self._codes:
            self._codes.add(name)
            self.memory.fixed["Vertex Code"] += code

    def vertices(self) -> ComputeSet:
        """The compute set that the next vertices join, side by side with what is in it."""
        if type(self._open) is not ComputeSet or self._open.stage != self.stage:
            self.flush()
            self._open = ComputeSet(self.target, self.n_tiles, self.stage)
        return self._open

    def elementwise(self, place: Place) -> ElementwiseSet:
        """The fused elementwise vertex that the next operation joins."""
        found = self._open
        moved = self._incoming.any()
        if (
            moved or not isinstance(found, ElementwiseSet)
            or found.place.key != place.key or found.stage != self.stage
        ):  # fmt: skip
            self._close()
            self.transfer()
            found = ElementwiseSet(self.target, self.n_tiles, self.stage).start(place)
            self._open = found
        return found

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
        self.memory.receive(incoming)
        self.memory.fixed["Internal Exchange Code"] += EXCHANGE_BYTES * took_part
        self.steps.append(
            Step("sync", "sync", self.stage, Cycles(float(sync), float(sync)), self.n_tiles,
                 how=sync.how, source=sync.source)
        )  # fmt: skip
        self.steps.append(
            Step("exchange", "exchange", self.stage, Cycles(cycles, cycles),
                 int(took_part.sum()), moved_bytes=float(incoming.sum()), how="formula",
                 source="bytes in and out of the busiest tile over the exchange's rate")
        )  # fmt: skip
        if links:
            self.steps.append(
                Step("exchange", "links between IPUs", self.stage, Cycles(links, links),
                     self.n_tiles, how="estimated",
                     moved_bytes=float(crossing.sum() - crossing.trace()),
                     source="bytes from IPU to IPU over the rates of the links, no latency")
            )  # fmt: skip

    def library(self, name: str, load: np.ndarray, source: str, how: str = "formula") -> None:
        """A compute set of library vertices, `load` [n_tiles] cycles each, behind the exchange of
        what was fetched."""
        self._close()
        self.transfer()
        vertices = int((load > 0).sum())
        self._append(compute_step(name, self.stage, load, load, vertices, how, source), load)

    def other(self, kind: str, name: str, cycles: float, source: str, how: str) -> None:
        """Exchange or sync inside something that is priced as a whole."""
        self.steps.append(
            Step(
                kind, name, self.stage, Cycles(cycles, cycles), self.n_tiles, how=how, source=source
            )
        )

    def flush(self) -> None:
        """End the open compute set."""
        self._close()
        self.transfer()

    def _close(self) -> None:
        found, self._open = self._open, None
        if found is None:
            return
        step, load = found.step()
        if type(found) is ComputeSet:
            self.transfer()  # what its vertices fetched comes first
        self._append(step, load)

    def _append(self, step: Step, load: np.ndarray) -> None:
        self.memory.fixed["Control Code"] += CONTROL_BYTES * (load > 0)
        self.loads[id(step)] = load
        self.steps.append(step)


def _between(incoming: np.ndarray, outgoing: np.ndarray, ipus: int) -> np.ndarray:
    """[ipus, ipus] bytes: what a tile receives comes from all IPUs in proportion to what they send,
    and an IPU sends no byte twice to the same other one."""
    arriving = incoming.reshape(ipus, -1).sum(axis=1)
    sent = outgoing.reshape(ipus, -1).sum(axis=1)
    share = sent / sent.sum() if sent.sum() else sent
    return np.minimum(sent[:, None], share[:, None] * arriving[None])
