"""From a program to priced steps: the walk over the jaxpr.

`Pricer.block` goes through the equations of a jaxpr in order.  Every variable is a `Value`: where
its elements lie, and which buffers hold them.  The rules (rules.py) say what an equation costs;
the walk itself knows loops, branches and calls.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.extend.core import Jaxpr, Literal

from pyscf_ipu.ipu.errors import refuse_float64
from pyscf_ipu.ipu.layout import Place, linear
from pyscf_ipu.ipu.priced_as import priced_form
from pyscf_ipu.ipu.steps import Steps, Value
from pyscf_ipu.ipu.target import Target
from pyscf_ipu.ipu.trips import Path, called, sites

FOLDED = 2**22  # elements up to which a constant is computed when the program is priced
TRANSFORMS = re.compile(r"^(\w+)\((.*)\)$")
CONTROL = frozenset("while body cond scan branch checkpoint closed_call".split())


@dataclass
class Loop:
    """A block that runs as often as the site `trips` counts, or a fixed number of times."""

    trips: Path | int
    body: list[Any] = field(default_factory=list)
    name: str = "loop"


Rule = Callable[["Pricer", Any, list[Value]], list[Value]]


class Pricer(Steps):
    """Prices programs for one target; holds what is found on the way."""

    def __init__(self, target: Target, n_tiles: int, rules: Mapping[str, Rule]) -> None:
        super().__init__(target, n_tiles)
        self.rules = rules
        self.unknown: list[tuple[str, list[Path | int]]] = []
        self._loops: list[Path | int] = []

    def block(
        self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Value], path: Path
    ) -> list[Value]:
        """Price a jaxpr; returns the values of its results, each with one use of its buffers."""
        env: dict[Any, Value] = {}
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            env[var] = self.constant(const)
            if np.issubdtype(env[var].constant.dtype, np.floating):
                stored = linear(env[var].size, env[var].itemsize, self.n_tiles)
                self.memory.fixed["Constants"] += stored.bytes(env[var].itemsize)
        for var, value in zip(jaxpr.invars, args, strict=True):
            self.memory.use(value.buffers)
            env[var] = value
        last = _last_uses(jaxpr)
        outer = self.stage
        for i, eqn in enumerate(jaxpr.eqns):
            self.stage = outer or _stage(eqn)
            ins = [self.constant(x.val) if isinstance(x, Literal) else env[x] for x in eqn.invars]
            outs = self.equation(eqn, ins, (*path, i))
            for var, value in zip(eqn.outvars, outs, strict=True):
                if var in last:
                    env[var] = value
                else:
                    self.memory.release(value.buffers)
            for var in {x for x in eqn.invars if not isinstance(x, Literal) and last[x] == i}:
                self.memory.release(env.pop(var).buffers)
        self.stage = outer
        results = []
        for x in jaxpr.outvars:
            value = self.constant(x.val) if isinstance(x, Literal) else env[x]
            self.memory.use(value.buffers)
            results.append(value)
        for value in env.values():
            self.memory.release(value.buffers)
        return results

    def equation(self, eqn: Any, ins: list[Value], path: Path) -> list[Value]:
        """Price one equation."""
        refuse_float64(eqn)
        name = eqn.primitive.name
        inner = called(eqn)
        if inner is not None:
            return self.block(inner.jaxpr, inner.consts, ins, path)
        if name == "while":
            return self._while(eqn, ins, path)
        if name == "scan":
            return self._scan(eqn, ins, path)
        if name == "cond":
            return self._cond(eqn, ins, path)
        if name in ("codelet", "priced_as"):
            closed = priced_form(eqn)
            return self.block(closed.jaxpr, closed.consts, ins, path)
        folded = _fold(eqn, ins)
        if folded is not None:
            return [self.constant(x) for x in folded]
        rule = self.rules.get(name)
        if rule is None:
            self.note_unknown(name)
            return [self.new(v.aval, name) for v in eqn.outvars]
        return rule(self, eqn, ins)

    def _while(self, eqn: Any, ins: list[Value], path: Path) -> list[Value]:
        n_cond, n_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
        of_cond, of_body, carry = (
            ins[:n_cond],
            ins[n_cond : n_cond + n_body],
            ins[n_cond + n_body :],
        )

        def once(state: list[Value]) -> list[Value]:
            if any(sites(test.jaxpr)):
                self.note_unknown("a loop or branch in the test of a while")
            else:
                for value in self.block(test.jaxpr, test.consts, [*of_cond, *state], path):
                    self.memory.release(value.buffers)
            return self.block(body.jaxpr, body.consts, [*of_body, *state], path)

        return self._loop(path, carry, [v.aval for v in eqn.outvars], once)

    def _scan(self, eqn: Any, ins: list[Value], path: Path) -> list[Value]:
        body, n_consts, n_carry = (eqn.params[k] for k in ("jaxpr", "num_consts", "num_carry"))
        length = eqn.params["length"]
        consts, carry, xs = (
            ins[:n_consts], ins[n_consts : n_consts + n_carry], ins[n_consts + n_carry :]
        )  # fmt: skip
        avals = [v.aval for v in eqn.outvars]
        rows = [
            self.view([x], v.aval)
            for x, v in zip(xs, body.jaxpr.invars[n_consts + n_carry :], strict=True)
        ]
        stacked = [self.new(a, "scan") for a in avals[n_carry:]]

        def once(state: list[Value]) -> list[Value]:
            outs = self.block(body.jaxpr, body.consts, [*consts, *state, *rows], path)
            for value, whole in zip(outs[n_carry:], stacked, strict=True):
                if value.place.key != whole.place.key:
                    self.fetch(value, value.size * value.itemsize * _share(whole.place))
                self.memory.release(value.buffers)
            return outs[:n_carry]

        found = self._loop(length, carry, avals[:n_carry], once)
        for row in rows:
            self.memory.release(row.buffers)
        return [*found, *stacked]

    def _loop(
        self, trips: Path | int, carry: list[Value], avals: list[Any],
        once: Callable[[list[Value]], list[Value]],
    ) -> list[Value]:  # fmt: skip
        """A loop whose carried values lie where its body leaves them."""
        state = [self.new(a, "loop", v.kept_place()) for a, v in zip(avals, carry, strict=True)]
        self._copy(carry, state)
        self.flush()
        outer, self.steps = self.steps, []
        self._loops.append(trips)
        results = once(state)
        self._copy(results, state)
        self.flush()
        self._loops.pop()
        body, self.steps = self.steps, outer
        self.steps.append(Loop(trips, body, self.stage or "loop"))
        for value in results:
            self.memory.release(value.buffers)
        return state

    def _cond(self, eqn: Any, ins: list[Value], path: Path) -> list[Value]:
        self.flush()
        outs = [self.new(v.aval, "cond") for v in eqn.outvars]
        for k, branch in enumerate(eqn.params["branches"]):
            outer, self.steps = self.steps, []
            self._loops.append((*path, k))
            results = self.block(branch.jaxpr, branch.consts, ins[1:], (*path, k))
            self._copy(results, outs)
            for value in results:
                self.memory.release(value.buffers)
            self.flush()
            self._loops.pop()
            body, self.steps = self.steps, outer
            self.steps.append(Loop((*path, k), body, "branch"))
        return outs

    def _copy(self, values: list[Value], to: list[Value]) -> None:
        """Values go to where a loop or branch wants them, unless they are there already."""
        for value, wanted in zip(values, to, strict=True):
            if value.view or value.place.key != wanted.place.key:
                self.fetch(value, wanted.bytes())

    def note_unknown(self, name: str, times: int = 1) -> None:
        """Something without a cost: the total becomes a lower bound."""
        self.unknown += [(name, list(self._loops))] * times


def _last_uses(jaxpr: Jaxpr) -> dict[Any, int]:
    """Index of the last equation that uses each variable; results of the block live on."""
    last: dict[Any, int] = dict.fromkeys([*jaxpr.constvars, *jaxpr.invars], -1)
    for i, eqn in enumerate(jaxpr.eqns):
        for x in eqn.invars:
            if not isinstance(x, Literal):
                last[x] = i
    for x in jaxpr.outvars:
        if not isinstance(x, Literal):
            last[x] = len(jaxpr.eqns)
    return last


def _stage(eqn: Any) -> str:
    """The outermost named scope of an equation."""
    for part in str(eqn.source_info.name_stack).split("/"):
        while (found := TRANSFORMS.match(part)) is not None:
            if found.group(1) in ("jit", "pjit"):
                part = ""
                break
            part = found.group(2)
        if part and part not in CONTROL:
            return part
    return ""


def _share(place: Place) -> np.ndarray:
    """Fraction of an array on each tile."""
    total = place.elements.sum()
    return place.elements / total if total else place.elements


def _fold(eqn: Any, ins: list[Value]) -> list[Any] | None:
    """Results that are known at compile time.

    Only integers and conditions are worked out, because only they matter here: as indices.  In the
    place of other constants stands a zero.
    """
    if any(v.constant is None for v in ins) or eqn.effects or eqn.primitive.name == "tile_map":
        return None
    avals = [v.aval for v in eqn.outvars]
    if sum(math.prod(a.shape) for a in avals) > FOLDED:
        return None
    if all(np.issubdtype(a.dtype, np.floating) for a in avals):
        return [np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in avals]
    if any(np.issubdtype(v.constant.dtype, np.floating) for v in ins):
        return None
    with jax.ensure_compile_time_eval():
        params = eqn.primitive.get_bind_params(eqn.params)
        outs = eqn.primitive.bind(*(jax.device_put(v.constant) for v in ins), **params)
    return list(outs) if eqn.primitive.multiple_results else [outs]
