"""How long a dataset will take, and what it costs, from the rate of a run that was made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import store
from .errors import UserError

FEWEST_ROWS = 100
"""Below which a rate says more about the start of a run than about the run."""

HOUR = 3600.0
MACHINES = (1, 4, 16, 64, 256)


@dataclass(frozen=True)
class Rate:
    """What a run has shown of a machine."""

    rows: int
    seconds: float
    """Of the clock, from start to end."""
    program_seconds: float
    """Of making programs ready, spread over the workers: paid once, however long the run."""
    workers: int
    bytes_per_row: float
    level: str
    mean_atoms: float

    @property
    def steady(self) -> float:
        """Rows per second once all programs are there."""
        return self.rows / max(self.seconds - self.program_seconds, 1e-9)


@dataclass(frozen=True)
class Line:
    """An estimate for so many machines."""

    machines: int
    hours: float
    cost: float | None


def rate_of(folder: Path) -> Rate:
    """The rate of the last run in a folder that was made on one machine.

    Raises:
        UserError: no run there, none of FEWEST_ROWS rows, or all of them on a cluster.
    """
    manifest = store.read_manifest(folder)
    long = [run for run in manifest.get("runs", ()) if run["rows"] >= FEWEST_ROWS]
    runs = [run for run in long if isinstance(run["workers"], int)]
    if long and not runs:
        raise UserError(
            f"folder {folder} was computed on a cluster, which says nothing of one machine; "
            "measure with a qm1b generate without --cluster, or leave --measured out."
        )
    if not runs:
        raise UserError(
            f"folder {folder} holds no run of at least {FEWEST_ROWS} rows; measure with a longer "
            "qm1b generate, or leave --measured out."
        )
    run: dict[str, Any] = runs[-1]
    rows = atoms = size = 0
    for path in store.shards(folder):
        shard = store.read_shard(path)
        rows, atoms = rows + len(shard["line"]), atoms + len(shard["numbers"])
        size += path.stat().st_size
    settings = manifest["settings"]
    return Rate(
        rows=run["rows"],
        seconds=run["seconds"],
        program_seconds=sum(p["seconds"] for p in run["programs"]) / run["workers"],
        workers=run["workers"],
        bytes_per_row=size / rows,
        level="{xc}/{basis}, grid level {grid_level}, {precision}".format(**settings),
        mean_atoms=atoms / rows,
    )


def estimate(rate: Rate, rows: float, price_per_hour: float | None) -> list[Line]:
    """Hours of the clock, and cost of all machines, for each number of MACHINES.

    Every machine has to make its own programs ready.
    """
    lines = []
    for machines in MACHINES:
        seconds = rows / machines / rate.steady + rate.program_seconds
        hours = seconds / HOUR
        cost = None if price_per_hour is None else hours * machines * price_per_hour
        lines.append(Line(machines, hours, cost))
    return lines


def as_text(rate: Rate, molecules: float, conformers: int, price_per_hour: float | None) -> str:
    """The estimate as a table, with what it rests on."""
    rows = molecules * conformers
    said = [
        f"{molecules:,.0f} molecules x {conformers:,} conformers = {rows:,.0f} rows, "
        f"{rows * rate.bytes_per_row / 1e9:,.1f} GB of HDF5",
        f"measured: {rate.rows:,} rows in {rate.seconds:.0f} s by {rate.workers} compute processes"
        f" ({rate.level}; {rate.mean_atoms:.1f} atoms a molecule)",
        f"          {rate.steady:.2f} rows/s without the {rate.program_seconds:.0f} s in which "
        "programs were made ready",
        "",
        "machines          time" + ("" if price_per_hour is None else "            cost"),
    ]
    for line in estimate(rate, rows, price_per_hour):
        cost = "" if line.cost is None else f"{line.cost:16,.0f}"
        said.append(f"{line.machines:8}{_duration(line.hours):>14}{cost}")
    said += [
        "",
        "For molecules like the measured ones: time grows with about the cube of the number of "
        "orbitals. Machines split the input with --shard i/n or --cluster.",
    ]
    if price_per_hour is None:
        said.append("--price-per-hour gives the cost, in the currency of the price.")
    return "\n".join(said)


def _duration(hours: float) -> str:
    if hours < 1.0:
        return f"{60 * hours:.0f} min"
    return f"{hours:,.1f} h" if hours < 72 else f"{hours / 24:,.1f} days"
