"""A simulated IPU: the same program, priced tile by tile in cycles, bytes and tile memory.

    from pyscf_ipu.ipu import BOW, simulate
    outputs, profile = simulate(fn, BOW)(*args)
    print(profile.summary())

What is modelled, and how far to trust it: docs/simulated-ipu.md.
"""

from pyscf_ipu.ipu.errors import Float64OnIpuError, TileMemoryError
from pyscf_ipu.ipu.families import FamilyPlan, family_plan
from pyscf_ipu.ipu.jacobi import jacobi_eigh
from pyscf_ipu.ipu.machine import machine_of
from pyscf_ipu.ipu.profile import Profile
from pyscf_ipu.ipu.quantity import Quantity
from pyscf_ipu.ipu.rules import RULES
from pyscf_ipu.ipu.simulate import memory_of, simulate
from pyscf_ipu.ipu.target import BOW, GC2, GC200, TARGETS, Target, target

__all__ = [
    "BOW",
    "GC2",
    "GC200",
    "RULES",
    "TARGETS",
    "FamilyPlan",
    "Float64OnIpuError",
    "Profile",
    "Quantity",
    "Target",
    "TileMemoryError",
    "family_plan",
    "jacobi_eigh",
    "machine_of",
    "memory_of",
    "simulate",
    "target",
]
