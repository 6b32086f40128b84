"""What `pyscf-ipu rks --ipu TARGET` says: the run of the same molecule on a simulated IPU."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyscf_ipu.base.errors import UsageError

if TYPE_CHECKING:
    from pyscf_ipu.commands.report import Report
    from pyscf_ipu.molecule.molecule import Molecule
    from pyscf_ipu.settings import Settings


def target_and_number(text: str, option: str = "--compare") -> tuple[str, int]:
    """Split "bow:4" into ("bow", 4).

    Raises:
        UsageError: the number of chips is not a number.
    """
    name, _, number = text.partition(":")
    if number and not number.isdecimal():
        raise UsageError(f"{option} {text}: give a target, or TARGET:IPUS, for example bow:4")
    return name, int(number or 1)


def checked_target(text: str) -> tuple[str, int]:
    """The value of --ipu, whose chip there is.

    Raises:
        UsageError: there is no such chip, or it has not as many IPUs.
    """
    from pyscf_ipu.ipu.chip.target import priced_target

    name, number = target_and_number(text, "--ipu")
    priced_target(name).check_ipus(number)
    return name, number


def simulated(molecule: Molecule, settings: Settings, text: str, report: Report) -> None:
    """Price the SCF, and report cycles, time and memory.

    Args:
        molecule: as computed.
        settings: the level; the precision is float32 there, the only one that the chip has.
        text: the chip, or CHIP:NUMBER.
        report: takes a line, and a record named `ipu`.

    Raises:
        UsageError: there is no such chip.
    """
    from pyscf_ipu.ipu.engine.command import profile_rks

    name, number = checked_target(text)
    profile = profile_rks(molecule, replace(settings, precision="float32"), name, num_ipus=number)
    cycles, seconds, memory = profile.cycles, profile.seconds, profile.memory
    fullest, over = int(memory.per_tile.max()), len(memory.overflowing)
    what = f"{over} tiles need more than they have" if over else "it fits"
    if not over and not memory.fits:
        what = "a tile has too little memory for its code, or for operands of the matrix unit"
    bound = " or more (some operations have no price)" if profile.unknown_ops else ""
    report.add(
        f"on a simulated {name}{f' x {number}' if number > 1 else ''} in float32: "
        f"{cycles.low / 1e6:.1f} to {cycles.high / 1e6:.1f} million cycles{bound}, "
        f"{1e3 * seconds.low:.1f} to {1e3 * seconds.high:.1f} ms; fullest tile "
        f"{fullest / 1024:.0f} of {memory.limit_bytes / 1024:.0f} KiB: {what} "
        "(pyscf-ipu profile says more)",
        ipu={
            "target": name,
            "num_ipus": number,
            "cycles": [cycles.low, cycles.high],
            "seconds": [seconds.low, seconds.high],
            "fullest_tile_bytes": fullest,
            "overflowing_tiles": over,
        },
    )
