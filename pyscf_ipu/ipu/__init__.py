"""A simulated IPU: the same program, priced tile by tile in cycles, bytes and tile memory::

    from pyscf_ipu.ipu import BOW, simulate
    outputs, profile = simulate(fn, BOW)(*args)
    print(profile.summary())

What is modelled, and how far to trust it: docs/simulated-ipu.md.
"""

from pyscf_ipu.base.errors import (
    BFloat16OnIpuError,
    DtypeOnIpuError,
    Float64OnIpuError,
    TileMemoryError,
    UnknownEquation,
)
from pyscf_ipu.ipu.chip.quantity import Quantity
from pyscf_ipu.ipu.chip.target import BOW, GC2, GC200, TARGETS, Target, priced_target, target
from pyscf_ipu.ipu.engine.algorithms.families import FamilyPlan, family_plan
from pyscf_ipu.ipu.engine.algorithms.jacobi import jacobi_eigh
from pyscf_ipu.ipu.engine.chip_machine import machine
from pyscf_ipu.ipu.engine.tile_machine import machine_of
from pyscf_ipu.ipu.pricing.on_ipu import on_ipu
from pyscf_ipu.ipu.pricing.rules import RULES
from pyscf_ipu.ipu.pricing.streaming import streaming_load, streaming_store
from pyscf_ipu.ipu.profile.data import MicroBatches
from pyscf_ipu.ipu.report.profile import Profile
from pyscf_ipu.ipu.simulate import memory_of, profile_of, simulate
from pyscf_ipu.ipu.steps.streams import Streams

__all__ = [
    "BOW",
    "GC2",
    "GC200",
    "RULES",
    "TARGETS",
    "BFloat16OnIpuError",
    "DtypeOnIpuError",
    "FamilyPlan",
    "Float64OnIpuError",
    "MicroBatches",
    "Profile",
    "Quantity",
    "Streams",
    "Target",
    "TileMemoryError",
    "UnknownEquation",
    "family_plan",
    "jacobi_eigh",
    "machine",
    "machine_of",
    "memory_of",
    "on_ipu",
    "priced_target",
    "profile_of",
    "simulate",
    "streaming_load",
    "streaming_store",
    "target",
]
