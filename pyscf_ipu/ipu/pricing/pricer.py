"""From a program to priced steps: the walk over the jaxpr.

`Pricer.block` goes through the equations of a jaxpr in order.  Every variable is a `Value`: the
place of its elements and the buffers that hold them.  The rules (rules.py) price an equation; the
walk itself deals with loops, branches and calls.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import AbstractValue
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.ipu.chip.collectives import COLLECTIVES
from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.pricing.jaxprs import fold, last_uses, stage
from pyscf_ipu.ipu.pricing.on_ipu import marked, phase_of, spans_stages
from pyscf_ipu.ipu.pricing.priced_as import priced_form
from pyscf_ipu.ipu.steps.places import Place, linear
from pyscf_ipu.ipu.steps.steps import Either, Loop, Steps, Value
from pyscf_ipu.ipu.steps.streams import Home
from pyscf_ipu.ipu.steps.tile_memory import release, use
from pyscf_ipu.ipu.vertices.cycles import ARITHMETIC
from pyscf_ipu.ipu.vertices.equation import aval, refuse_types
from pyscf_ipu.ipu.vertices.jax_equations import (
    branches_of,
    called,
    lanes_of,
    mesh_of,
    refuse_program,
    scan_of,
    while_of,
)
from pyscf_ipu.ipu.vertices.trip_counts import TEST, Path, lanes_that_go_on

AVAILABLE = 0.6
"""Share of a tile's memory for the operands of one product: the default of PopLibs's option
availableMemoryProportion (docs.graphcore.ai, PopLibs API, poplin)."""

Rule = Callable[["Pricer", JaxprEqn, list[Value]], list[Value]]
"""Takes the pricer, an equation and the values of its operands; returns those of its results."""


@dataclass(frozen=True)
class Pricing:
    """How a program is priced."""

    rules: Mapping[str, Rule]
    replicas: int = 1
    available: float = AVAILABLE
    """Share of a tile's memory for one matrix product."""
    quick: bool = False
    """Whether the program that counts its loops is compiled as `run_counts(quick=True)` does."""
    stages: int = 0
    """IPUs, if each has `n_tiles` tiles and a stage of its own; 0: all share every operation."""


class Pricer(Steps):
    """Prices programs for one target."""

    def __init__(self, target: Target, n_tiles: int, how: Pricing) -> None:
        super().__init__(target, n_tiles, how.replicas, stage_ipus=how.stages or 1)
        self.rules, self.available = how.rules, how.available
        self.unknown: list[tuple[str, list[Path | int]]] = []
        self.half = False
        """Whether there are float16 products."""
        self.staged = how.stages > 0
        """Whether the program names IPUs for its stages."""
        self.rounds: list[int] = []
        """Turns of the loops over updates and micro-batches, from the outermost on."""
        self.at_home: dict[Value, Value | None] = {}
        """Arguments that stay in streaming memory, and what was loaded of them."""
        self._pinned: int | None = None
        self._of_a_pass = False
        self._turning = 0
        self._crossed: set[tuple[object, int]] = set()
        self._loops: list[Path | int] = []
        self.path: Path = ()
        """Of the equation that is being priced."""
        self.notes: list[str] = []

    def block(
        self, jaxpr: Jaxpr, consts: Sequence[object], args: Sequence[Value], path: Path
    ) -> list[Value]:
        """Price a jaxpr; returns the values of its results, each with one use of its buffers."""
        env: dict[Var, Value] = {}
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            value = env[var] = self.constant(const)
            self.note_constant(value, linear(value.size, value.itemsize, self.n_tiles).elements)
        for var, value in zip(jaxpr.invars, args, strict=True):
            use(value.buffers)
            env[var] = value
        last = last_uses(jaxpr)
        outer = self.stage
        for i, eqn in enumerate(jaxpr.eqns):
            self.stage = outer or stage(eqn)
            ins = [self._value(x, env) for x in eqn.invars]
            outer_pin, outer_pass = self._pinned, self._of_a_pass
            if self.staged:
                self._turn_to(eqn)
                self._go_to(eqn, ins)
            outs = self.equation(eqn, ins, (*path, i))
            self._pinned, self._of_a_pass = outer_pin, outer_pass
            for var, value in zip(eqn.outvars, outs, strict=True):
                if var in last:
                    env[var] = value
                else:
                    self.let_go(value)
            for var in dict.fromkeys(x for x in eqn.invars if isinstance(x, Var) and last[x] == i):
                self.let_go(env.pop(var))
        self.stage = outer
        results = [self._value(x, env) for x in jaxpr.outvars]
        for value in results:
            use(value.buffers)
        self._release(env.values())
        return results

    def _value(self, x: Var | Literal, env: dict[Var, Value]) -> Value:
        return self.constant(x.val) if isinstance(x, Literal) else env[x]

    def _release(self, values: Iterable[Value]) -> None:
        for value in values:
            self.let_go(value)

    def results(self, eqn: JaxprEqn, place: Place | None = None) -> list[Value]:
        """A variable in memory for every result of an equation."""
        return [self.new(v.aval, eqn.primitive.name, place) for v in eqn.outvars]

    def equation(self, eqn: JaxprEqn, ins: list[Value], path: Path) -> list[Value]:
        """Price one equation."""
        name = eqn.primitive.name
        known = all(v.constant is not None for v in ins)
        refuse_types(eqn, stored=known or name not in ARITHMETIC)
        if self.collecting and name not in COLLECTIVES:
            self.flush()
        inner = called(eqn)
        if inner is not None and name == "shard_map":
            ins = self._own_parts(eqn, inner, ins)
        if inner is not None:
            return self.block(inner.jaxpr, inner.consts, ins, path=path)
        control = {"while": self._while, "scan": self._scan, "cond": self._cond}.get(name)
        if control is not None:
            return control(eqn, ins, path)
        if name in ("codelet", "priced_as"):
            closed = priced_form(eqn)
            return self.block(closed.jaxpr, closed.consts, ins, path=path)
        ins = [self._at_hand(v) for v in ins]
        folded = fold(eqn, ins)
        if folded is not None:
            different = math.prod(v.distinct for v in ins)
            return [self.constant(x, min(different, np.size(x))) for x in folded]
        if name in self.rules:
            self.path = path
            return self.rules[name](self, eqn, ins)
        refuse_program(eqn)
        self.note_unknown(name)
        return self.results(eqn)

    def argument(self, aval: AbstractValue, home: Home, first: int | None) -> Value:
        """A variable that the program is called with, and that is used first on an IPU."""
        self.ipu = (first or 0) if home.ipu is None else home.ipu
        value = self.new(aval, "argument")
        if not home.off_chip:
            return value
        release(value.buffers)
        away = self.off_chip(value)
        self.at_home[away] = None
        return away

    def _at_hand(self, value: Value) -> Value:
        """The variable; an argument that stays in streaming memory is loaded once."""
        if value not in self.at_home:
            return value
        loaded = self.at_home[value] or self.stream(value, store=False)
        self.at_home[value] = loaded
        return loaded

    def go(self, ipu: int) -> None:
        """Move on to an IPU."""
        if ipu != self.ipu:
            self.flush()
            self.ipu = ipu

    def _turn_to(self, eqn: JaxprEqn) -> None:
        """Note whether forward, backward or update comes; what follows a backward pass in its loop
        belongs to it, and what follows outside is the update."""
        phase = None if self._of_a_pass else phase_of(eqn)
        self._of_a_pass |= phase is not None
        if phase is None and self.phase == "backward" and not (self._of_a_pass or self._turning):
            phase = "update"
        self._enter(phase or self.phase)

    def _enter(self, phase: str) -> None:
        if phase != self.phase:
            self.flush()
            if phase == "backward":
                self.memory.turn()
            self.phase = phase

    def _go_to(self, eqn: JaxprEqn, ins: list[Value]) -> None:
        """Move on to the IPU of an equation, and bring its operands there."""
        arrays = [v for v in ins if v.constant is None]
        mark = marked(eqn) if self._pinned is None else self._pinned
        most = max(arrays, key=lambda v: (v.distinct * v.itemsize, v.ipu), default=None)
        wanted = mark if mark is not None else self.ipu if most is None else most.ipu
        opened = called(eqn) is not None or spans_stages(eqn)
        if eqn.primitive.name in COLLECTIVES or (opened and mark is None):
            return  # what is inside decides for itself
        self._pinned = wanted
        self.go(wanted)
        for v in arrays:
            if v.ipu != wanted and ((v.buffers, v.ipu), wanted) not in self._crossed:
                self._crossed.add(((v.buffers, v.ipu), wanted))
                self.flush()
                self.cross(v)

    def _own_parts(self, eqn: JaxprEqn, body: ClosedJaxpr, ins: list[Value]) -> list[Value]:
        """What one replica has of the operands of a `shard_map`; its mesh has a device for each."""
        devices = math.prod(mesh_of(eqn).shape.values())
        if devices not in (1, self.replicas):
            raise UsageError(
                f"the program is spread over {devices} devices: simulate it with "
                f"replicas={devices}, or make its mesh of one device for any number"
            )
        inner = body.jaxpr.invars
        return [
            v if v.size == aval(x).size else self.new(x.aval, "shard_map")
            for v, x in zip(ins, inner, strict=True)
        ]

    def _while(self, eqn: JaxprEqn, ins: list[Value], path: Path) -> list[Value]:
        test, body, n_cond, n_body = while_of(eqn)
        of_cond, of_body = ins[:n_cond], ins[n_cond : n_cond + n_body]
        carry, avals = ins[n_cond + n_body :], [aval(v) for v in eqn.outvars]
        batched = lanes_of(eqn)

        def once(state: list[Value]) -> list[Value]:
            asked = (*path, TEST)
            self.in_block(asked)
            go_on = self.block(test.jaxpr, test.consts, [*of_cond, *state], path=asked)
            self._release(() if batched else go_on)
            self.in_block(path)
            outs = self.block(body.jaxpr, body.consts, [*of_body, *state], path=path)
            if not batched:
                return outs
            selected = jax.make_jaxpr(lambda on, *x: (jnp.any(on), lanes_that_go_on(on, *x)))
            ends = selected(aval(test.jaxpr.outvars[0]), avals, avals)
            last, *chosen = self.block(ends.jaxpr, ends.consts, [*go_on, *outs, *state], path=path)
            self._release([last, *go_on, *outs])
            return chosen

        if not batched or 0 in batched:
            return self._loop(path, carry, avals, once=once)
        self.flush()
        outer, self.steps = self.steps, []
        outs = self._loop(path, carry, avals, once=once)
        together, self.steps = self.steps, []
        self.path = path
        apart = self.rules["while"](self, eqn, ins) if "while" in self.rules else []
        if apart:
            self._copy(apart, outs)
            self._release(apart)
            self.flush()
        outer += [Either(math.prod(batched), self.steps, together)] if apart else together
        self.steps = outer
        return outs

    def _scan(self, eqn: JaxprEqn, ins: list[Value], path: Path) -> list[Value]:
        body, n_consts, n_carry, length, _ = scan_of(eqn)
        n = n_consts + n_carry
        if length == 1 or (self.staged and spans_stages(eqn)):
            return self._in_turn(eqn, ins, path)
        consts, carry = ins[:n_consts], ins[n_consts:n]
        avals = [v.aval for v in eqn.outvars]
        rows = [self.view([x], v.aval) for x, v in zip(ins[n:], body.jaxpr.invars[n:], strict=True)]
        stacked = [self.new(a, "scan") for a in avals[n_carry:]]

        def once(state: list[Value]) -> list[Value]:
            self.in_block(path)
            outs = self.block(body.jaxpr, body.consts, [*consts, *state, *rows], path=path)
            for value, whole in zip(outs[n_carry:], stacked, strict=True):
                if value.place.key != whole.place.key:
                    share = whole.place.elements / (whole.place.elements.sum() or 1.0)
                    self.fetch(value, value.size * value.itemsize * share, kept=True)
                self.let_go(value)
            return outs[:n_carry]

        carried = self._loop(length, carry, avals[:n_carry], once=once)
        self._release(rows)
        return [*carried, *stacked]

    def _in_turn(self, eqn: JaxprEqn, ins: list[Value], path: Path) -> list[Value]:
        """A loop over several stages, or of one turn; what it carries stays where it is made."""
        body, n_consts, n_carry, length, _ = scan_of(eqn)
        n, here = n_consts + n_carry, self.ipu
        rows = [self.view([x], v.aval) for x, v in zip(ins[n:], body.jaxpr.invars[n:], strict=True)]
        if self.staged and spans_stages(eqn):
            self.rounds.append(length)
            self.memory.begin()
            for i, v in enumerate(rows):
                self.ipu = v.ipu
                rows[i] = self.new(body.jaxpr.invars[n + i].aval, "micro-batch")
                self.memory.received(self.ipu, rows[i].bytes())
                self.let_go(v)
            self.ipu = here
        self._turning += 1
        with self.repeated(length, "micro-batches"):
            outs = self.block(body.jaxpr, body.consts, [*ins[:n], *rows], path=path)
            outs[:n_carry] = map(self._settled, eqn.outvars, outs[:n_carry])
            self.flush()
        self._turning -= 1
        self._release(rows)
        if self.phase == "backward":
            self._enter("update")
        stacked = zip(outs[n_carry:], eqn.outvars[n_carry:], strict=True)
        return [*outs[:n_carry], *(self.view([value], v.aval) for value, v in stacked)]

    def _settled(self, v: Var, value: Value) -> Value:
        """A value that a loop carries, in the linear mapping unless the program placed it."""
        place = value.kept_place() or linear(value.size, value.itemsize, self.n_tiles)
        if value.constant is not None or (value.place.key == place.key and not value.view):
            return value
        self.go(value.ipu)
        settled = self.new(v.aval, "loop", place)
        self._copy([value], [settled])
        self.let_go(value)
        return settled

    def _loop(
        self,
        trips: Path | int,
        carry: list[Value],
        avals: Sequence[AbstractValue],
        once: Callable[[list[Value]], list[Value]],
    ) -> list[Value]:
        """A loop whose carried values stay where its body leaves them."""
        state = [self.new(a, "loop", v.kept_place()) for a, v in zip(avals, carry, strict=True)]
        self._copy(carry, state)
        with self.repeated(trips, self.stage or "loop"):
            results = once(state)
            self._copy(results, state)
        self._release(results)
        return state

    @contextmanager
    def repeated(self, trips: Path | int, name: str) -> Iterator[None]:
        """What is priced inside runs this many times, or as often as a site counts."""
        if trips == 1:
            yield
            return
        self.flush()
        outer, self.steps, scope = self.steps, [], self.scope
        self._loops.append(trips)
        yield
        self.flush()
        self._loops.pop()
        outer.append(Loop(trips, self.steps, name))
        self.steps, self.scope = outer, scope

    def _cond(self, eqn: JaxprEqn, ins: list[Value], path: Path) -> list[Value]:
        self.flush()
        outs = self.results(eqn)
        for k, branch in enumerate(branches_of(eqn)):
            with self.repeated((*path, k), "branch"):
                self.in_block((*path, k))
                results = self.block(branch.jaxpr, branch.consts, ins[1:], path=(*path, k))
                self._copy(results, outs)
                self._release(results)
        return outs

    def _copy(self, values: list[Value], to: list[Value]) -> None:
        """Values go to where a loop or branch wants them, unless they are there already."""
        for value, wanted in zip(values, to, strict=True):
            if value.view or value.place.key != wanted.place.key:
                self.fetch(value, wanted.bytes(), kept=True)

    def note_unknown(self, name: str, times: int = 1) -> None:
        """Something without a cost: the total becomes a lower bound."""
        self.unknown += [(name, list(self._loops))] * times
