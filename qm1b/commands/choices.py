"""What `qm1b generate` does where a flag was left out, and which flags do not go together."""

import math
import operator
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pyscf_ipu.base.nearest import did_you_mean
from pyscf_ipu.settings import Settings
from qm1b.conformers.embedding import RELAX
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.inputs.detect import GEOMETRIES, ID_FIRST
from qm1b.rows.schema import PROPERTIES
from qm1b.settings import LOWEST, STABILITY, RunSettings

MAX_RATTLE_ANGSTROM = 1.0
"""Beyond that, bonds are broken rather than bent."""


def duration_seconds(text: str) -> float:
    """The seconds of --stop-after, as 20h, 90m or 1d12h."""
    number = r"([0-9]+(?:\.[0-9]*)?)"
    parts = re.fullmatch("".join(f"(?:{number}{unit})?" for unit in "dhms"), text.strip())
    numbers = [float(part or 0) for part in parts.groups()] if parts else []
    seconds = sum(map(operator.mul, numbers, (86400.0, 3600.0, 60.0, 1.0)))
    if 0 < seconds < math.inf:
        return seconds
    raise UserError(
        f"--stop-after is {text!r}: give days, hours, minutes or seconds, as 20h, 90m or 1d12h"
    )


def stability(given: str, history: bool, fixed_cycles: int | None) -> str:
    """--stability in the one spelling that settings have for it.

    Refuses all with --history, and any with --fixed-cycles.
    """
    choice = given if given in STABILITY else None
    with suppress(ValueError):
        share = float(given)
        if 0 <= share <= 1:
            choice = {0.0: "none", 1.0: "all"}.get(share, repr(share))
    if choice is None:
        raise UserError(
            f"--stability is {given}: use none, all, suspect, or give a share of the rows from 0 "
            "to 1"
        )
    if history and choice == "all":
        raise UserError(
            "--history is of one SCF, and --stability all makes several in every row: leave one out"
        )
    if fixed_cycles and choice != "none":
        raise UserError(
            f"--fixed-cycles is of one SCF that need not converge, and --stability {given} follows "
            "converged ones: leave one out"
        )
    return choice


def forces_need(level: Settings, preset: str | None) -> None:
    """Refuses a level whose SCF ends before forces are right.

    Args:
        level: that of the run.
        preset: the one that has forces, where the command line does not ask for them itself.
    """
    if level.accuracy != "properties":
        asked = "--forces" if preset is None else f"--preset {preset}, which has forces,"
        without = "--forces" if preset is None else "give --no-forces"
        raise UserError(
            f"{asked} and --accuracy {level.accuracy} do not fit, because the SCF ends before "
            f"forces are right: leave out --accuracy, or {without}"
        )


def properties(names: Sequence[str], level: Settings) -> tuple[str, ...]:
    """The properties of --properties, each once; refuses those that there are not."""
    for name in [name for name in names if name not in PROPERTIES]:
        raise UserError(
            f"--properties names {name!r}: use some of {', '.join(PROPERTIES)}, with spaces "
            f"between{did_you_mean(name, PROPERTIES)}; the input stands before --properties"
        )
    if names and level.accuracy != "properties":
        raise UserError(
            f"--properties and --accuracy {level.accuracy} do not fit, because the SCF ends before "
            "the density is right: leave out one of them"
        )
    return tuple(name for name in PROPERTIES if name in names)


def size_limit(level: Settings, out: Path | None, is_share: bool) -> int:
    """The AOs of a molecule at most, where the preset has no limit: of the run to resume, or what
    memory holds.

    Args:
        level: of the run.
        out: its folder.
        is_share: whether it computes one of several shares.

    Raises:
        UserError: the machines of several shares may hold different numbers.
    """
    settings = shards.settings_of_run(out) if out is not None else None
    if settings is not None:
        return int(settings["max_aos"])
    from pyscf_ipu.solver.platform import size_limit as of_memory

    limit = of_memory(level.check())
    if is_share:
        raise UserError(
            f"--shard with this preset needs --max-aos: otherwise it comes from a machine's memory "
            f"(here {limit}), and the jobs must agree"
        )
    return limit


def conformers(chosen: RunSettings, input_format: str, of_preset: int) -> int:
    """Conformers for each record; refuses flags that do not go together."""
    sigma, count = chosen.rattle_angstrom, chosen.conformers
    if chosen.relax not in RELAX:
        raise UserError(f"--relax is {chosen.relax!r}: use one of {', '.join(RELAX)}")
    if not sigma <= MAX_RATTLE_ANGSTROM:
        raise UserError(f"--rattle-angstrom is {sigma}: at most {MAX_RATTLE_ANGSTROM} is allowed")
    if chosen.smiles_column is not None and input_format != "table":
        raise UserError(
            f"--smiles-column is for tables, but the input looks like {input_format}; "
            "leave it out, or add --input-format table if the input is a table"
        )
    if chosen.id_column is not None and input_format in ("smiles", ID_FIRST):
        raise UserError(
            "--id-column is for tables, SDF and extended XYZ: on a line of SMILES, the id is what "
            "follows; leave it out, or add --input-format table if the input is a table"
        )
    if input_format not in GEOMETRIES:
        return of_preset if count is None else count
    if chosen.relax != "none" or chosen.one_stereoisomer:
        flag = "--one-stereoisomer" if chosen.relax == "none" else "--relax"
        raise UserError(
            f"{flag} is for SMILES: geometries of {input_format} are taken as given; leave it out"
        )
    if (count or 1) > 1 and not sigma:
        raise UserError(
            f"--conformers {count} would repeat each given geometry unchanged: leave it out, or "
            "displace the copies with --rattle-angstrom"
        )
    return count or 1


def spins(settings: RunSettings) -> RunSettings:
    """The settings, if their flags for open shells go together."""
    if settings.multiplicities != LOWEST and not settings.open_shells:
        raise UserError("--multiplicities all is of open shells: give --open-shells, too")
    return settings


def on_its_machine(settings: RunSettings) -> RunSettings:
    """The settings with their machine's usual name, if it computes them.

    Raises:
        UserError: the machine is not one for rows.
        UsageError: there is no such machine, or it does not compute this.
    """
    settings = replace(settings, machine=settings.machine.lower())
    if settings.machine == "gpu":
        raise UserError("--machine is gpu: rows are computed on cpu, or on a simulated IPU, bow")
    if settings.run_vertices and not settings.is_simulated:
        raise UserError("--run-vertices is for a simulated IPU: give --machine bow, too")
    if settings.is_simulated:
        from pyscf_ipu.ipu.chip.target import described_target
        from pyscf_ipu.ipu.engine.chip_machine import machine

        chip = machine(settings.machine, settings.run_vertices)
        settings = replace(settings, machine=described_target(settings.machine).name)
        chip.check(settings.forces, settings.stability != "none", open_shell=settings.open_shells)
        chip.level(settings.level)
    return settings
