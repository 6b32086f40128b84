"""What computes, by name: JAX's device, or a simulated chip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.host.backend import backend
from pyscf_ipu.solver.platform import PLATFORMS, Platform

if TYPE_CHECKING:
    from pyscf_ipu.ipu import Target


def find_machine(
    machine: str | Platform | Target | None, run_vertices: bool = False
) -> Platform | None:
    """The machine of a `Solver`; None for JAX's device.

    Args:
        machine: cpu or gpu, on which JAX must compute already; bow, gc200, or one of these with
            other figures, "bow:tile_clock_frequency=1.5e9"; a Target; or a machine.
        run_vertices: as of `pyscf_ipu.ipu.machine`.

    Raises:
        UsageError: there is no such machine, JAX computes on another device, or only a simulated
            chip has vertices to run.
    """
    if isinstance(machine, Platform):
        return machine
    machine = machine.lower() if isinstance(machine, str) else machine
    if machine is None or machine in PLATFORMS:
        if run_vertices:
            raise UsageError("run_vertices is for a simulated IPU: give machine='bow', too")
        if machine not in (None, backend()):
            raise UsageError(
                f"machine={machine!r}: JAX computes on {backend()} here; set "
                f"JAX_PLATFORMS={machine}, or leave machine out"
            )
        return None
    from pyscf_ipu.ipu.engine.chip_machine import machine as simulated

    return simulated(machine, run_vertices)
