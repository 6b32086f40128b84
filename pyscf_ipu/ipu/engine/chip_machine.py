"""A simulated chip as the machine of a `Solver`: its algorithms, and the price of every result."""

import functools
from dataclasses import replace

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.host.cores import n_cores
from pyscf_ipu.base.host.memory_limit import available_bytes
from pyscf_ipu.elements.basis_sets import ALL_ELECTRON, highest
from pyscf_ipu.ipu.chip.target import TARGETS, Target, described_target
from pyscf_ipu.ipu.engine.metered import metered
from pyscf_ipu.ipu.engine.tile_machine import machine_of
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.solver.memory import program_bytes, result_bytes
from pyscf_ipu.solver.platform import Platform

ENERGIES = (
    "the simulated IPU has programs for energies and all that comes with them, not for forces or "
    "stability; leave that out, or use machine='cpu'"
)
MOST_ANGULAR = 2
"""d functions."""
WITH_F = (
    "has f functions, which take minutes and gigabytes to compile for a simulated IPU; give a "
    "basis of s, p and d, or machine='cpu'"
)
BEYOND_KRYPTON = (
    "elements beyond krypton have shells that take minutes and gigabytes to compile for a "
    "simulated IPU; leave out the IPU"
)
BLOCKS = 2
"""Copies of the matrices over AO pairs: the integrals of a tile's quartets are kept as blocks."""


def machine(chip: Target | str = "bow", run_vertices: bool = False) -> Platform:
    """One IPU of a chip, for `pyscf_ipu.Solver(settings, machine)`.

    Every result is computed by the IPU's own program, and has the price of its own run:
    `ipu_cycles_low`, `ipu_cycles_high` and `ipu_fullest_tile_bytes`.

    Args:
        chip: bow, gc200, one of these with other figures ("bow:tile_clock_frequency=1.5e9"), or a
            `Target`.
        run_vertices: Compute integrals by the vertices that are priced, instead of this host's own
            code for them: the same up to rounding, several times as slow to compile.

    Raises:
        UsageError: There is no such chip, too little is known of it, or it is a system of several
            IPUs, of which a molecule has one.
        TypeError: This is neither a name nor a Target.
    """
    target = _named(chip) if isinstance(chip, str) else chip
    if not isinstance(target, Target):
        raise TypeError(f"a chip is needed, not a {type(chip).__name__}: give 'bow', or a Target")
    if target.ipus_per_system.known:
        raise UsageError(
            f"{target.name} has {int(target.ipus_per_system)} IPUs, and a molecule is computed on "
            "one: give bow or gc200"
        )
    return Platform(
        functools.partial(machine_of, target, 1, run_vertices=run_vertices),
        functools.partial(metered, target),
        batch_sizes=((64, 16), (100, 8), (160, 2)),
        fewer=(),
        threads=n_cores,
        call_bytes=_call_bytes,
        room=available_bytes,
        name=f"{target!r}{' vertices' * run_vertices}",
        level=_level,
        only_energies=ENERGIES,
        has_float64=False,
        has_prices=True,
        refuses=_refuses,
    )


def _named(text: str) -> Target:
    """The chip of a name; raises UsageError, which names those that compute molecules."""
    if text.partition(":")[0].lower() not in TARGETS:
        raise UsageError(
            f"unknown machine {text!r}: give cpu or gpu, or a simulated chip, bow or gc200"
        )
    return described_target(text)


def _level(settings: Settings) -> Settings:
    """The level as the chip computes it: all cycles on the whole grid, since no branch is free."""
    if settings.precision != "float32":
        raise UsageError(
            f"precision={settings.precision!r}: an IPU computes in float32; give "
            "precision='float32', or machine='cpu'"
        )
    if settings.jk != "exact":
        raise UsageError(
            f"jk={settings.jk!r}: a fit is made in float64, which an IPU does not have; give "
            "jk='exact', or machine='cpu'"
        )
    check_functional(settings)
    if highest(settings.basis, "C") > MOST_ANGULAR:
        raise UsageError(f"basis={settings.basis!r} {WITH_F}")
    return replace(settings, first_cycles="full")


def check_functional(settings: Settings) -> None:
    """Raise UsageError for VV10."""
    if settings.has_vv10:
        raise UsageError(
            f"xc={settings.xc!r}: VV10 sums over pairs of grid points, of which an IPU would have "
            "too many; give a functional without it, or leave out the IPU"
        )


def _refuses(shape: Shape) -> str:
    """Why molecules of a shape are not computed: elements beyond krypton, whose shells take as long
    to compile as f functions, or f functions of an element other than carbon."""
    if any(c.family[-1] > ALL_ELECTRON for c in shape.classes):
        return BEYOND_KRYPTON
    highest_l = max(kind.l_max for c in shape.classes for kind in c.kinds)
    return f"the basis of one of the elements {WITH_F}" if highest_l > MOST_ANGULAR else ""


def _call_bytes(shape: Shape, settings: Settings, size: int, forces: bool = False) -> int:
    del forces  # it computes none
    return BLOCKS * program_bytes(shape, settings) + size * result_bytes(shape, settings)
