"""Time of collectives among replicas: rings inside a machine, then across machines, then pods.

A ring all-reduce of B bytes among g members takes 2 (g - 1) steps, in each of which every member
sends B / g to the next one: 2 (g - 1) / g B bytes over each link (P. Patarasuk, X. Yuan,
J. Parallel Distrib. Comput. 69, 117 (2009), doi:10.1016/j.jpdc.2008.09.002).  On several levels,
the members of a group first reduce and scatter among themselves, then each ring of the next level
reduces its part, and what results is gathered the same way back.  So every level carries B bytes
for a group.
"""

import math
from dataclasses import dataclass

from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.profile.data import Cycles

REDUCING = frozenset("psum psum_invariant pmax pmin pmean".split())
GATHERING = frozenset("all_gather all_gather_invariant".split())
SCATTERING = frozenset("reduce_scatter psum_scatter".split())
EXCHANGING = frozenset(("all_to_all",))
SHIFTING = frozenset(("ppermute", "pshuffle"))
COLLECTIVES = REDUCING | GATHERING | SCATTERING | EXCHANGING | SHIFTING
"""Primitives of JAX by which replicas exchange data."""


@dataclass(frozen=True)
class Level:
    """Rings of one kind of link."""

    members: int
    bytes_per_second: float
    """Out of one member, one way."""


def levels(target: Target, replicas: int, num_ipus: int = 1) -> tuple[Level, ...]:
    """The rings of replicas of `num_ipus` IPUs each, from the inside out; none for one replica.

    Replicas follow each other IPU by IPU and machine by machine.  A replica that spans machines
    uses the links of all of them.
    """
    machine, whole = int(target.ipus_per_machine), int(target.ipus_per_pod)
    kinds = (
        (1, machine, float(target.ipu_link_bytes_per_second)),
        (machine, whole, float(target.machine_link_bytes_per_second)),
        (whole, 0, whole // machine * float(target.gateway_link_bytes_per_second)),
    )
    steps, left = [], replicas
    for unit, group, rate in kinds:
        members = min(left, max(1, group // max(unit, num_ipus))) if group else left
        if members > 1:
            steps.append(Level(members, rate * max(1, num_ipus // unit)))
        left = math.ceil(left / members)
    return tuple(steps)


def collective_cycles(
    target: Target, name: str, nbytes: float, replicas: int, num_ipus: int = 1
) -> Cycles:
    """Cycles of one of COLLECTIVES: low by the bandwidth of the links, high with what a step needs.

    `nbytes` are those of a replica's array that is summed, gathered, scattered or sent.  The high
    end adds a global sync for every step of a ring, and the latency of a link where the
    target has one.
    """
    seconds, steps = 0.0, 0
    latency = target.ipu_link_latency
    for level in levels(target, replicas, num_ipus):
        g, b = level.members, nbytes
        if name in SHIFTING:
            seconds, steps = max(seconds, b / level.bytes_per_second), 1
            continue
        if name in GATHERING:
            b *= g  # of the array that results
            nbytes = b
        rounds = 2 if name in REDUCING else 1
        seconds += rounds * (g - 1) / g * b / level.bytes_per_second
        steps += rounds * (g - 1)
    clock = float(target.tile_clock_frequency)
    low = float(math.ceil(seconds * clock))
    each = float(target.global_sync_cycles) + (float(latency) * clock if latency.known else 0.0)
    return Cycles(low, low + steps * each)
