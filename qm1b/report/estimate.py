"""Time and cost of a dataset, estimated from the rate of an earlier run."""

from dataclasses import dataclass
from pathlib import Path

from pyscf_ipu.base.terminal import text_table
from pyscf_ipu.settings import Settings
from qm1b.engine.padding import cheaper
from qm1b.engine.programs import PROGRAM_SECONDS
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.shard_folder import ShardFolder
from qm1b.settings import FINE

FEWEST_ROWS = 100
"""Rows that a rate needs: with fewer, the start of the run dominates."""

HOUR = 3600.0
MACHINES = (1, 4, 16, 64, 256)


@dataclass(frozen=True)
class RunRate:
    """The speed of a machine, measured by a run."""

    rows: int
    seconds: float
    """Time from start to end."""
    program_seconds: float
    """Time in which programs were made ready, spread over the workers."""
    new_machine_seconds: float
    """This time where no program is in a disk cache: spent once, however long the run."""
    programs: int
    cached: int
    """Programs that were needed, and those that came from the disk cache."""
    workers: int
    bytes_per_row: float
    level: Settings
    mean_atoms: float
    padding: str = FINE
    """Padding of the numbers of hydrogens: fine or coarse."""

    @property
    def steady(self) -> float:
        """Rows per second once all programs are ready."""
        return self.rows / max(self.seconds - self.program_seconds, 1e-9)


@dataclass(frozen=True)
class Line:
    """The estimate for a number of machines."""

    machines: int
    hours: float
    cost: float | None


def rate_of(folder: Path) -> RunRate:
    """The rate of a folder's last run on one machine.

    Raises:
        UserError: no run there, none with FEWEST_ROWS rows, or only runs on a cluster.
    """
    source = ShardFolder(folder)
    source.check()
    manifest, needed = source.manifest, ("rows", "workers", "seconds", "programs")
    long = [run for run in manifest.runs if run.get("rows", 0) >= FEWEST_ROWS]
    runs = [r for r in long if set(needed) <= r.keys() and isinstance(r["workers"], int)]
    if long and not runs:
        raise UserError(
            f"folder {folder} was computed on a cluster, which gives no rate of one machine; "
            "measure with a qm1b generate without --cluster, or leave --measured out"
        )
    if not runs:
        raise UserError(
            f"folder {folder} holds no run of at least {FEWEST_ROWS} rows; measure with a longer "
            "qm1b generate, or leave --measured out"
        )
    run = runs[-1]
    rows = atoms = size = 0
    for path in shards.shards(folder):
        shard = shards.read_shard(path)
        rows, atoms = rows + len(shard["line"]), atoms + len(shard["numbers"])
        size += path.stat().st_size
    if run["rows"] > rows:
        raise UserError(
            f"folder {folder}: by the manifest a run gave {run['rows']} rows, but the shards hold "
            f"{rows}; measure with another qm1b generate, or leave --measured out"
        )
    made = [p["seconds"] for p in run["programs"] if not p["cached"]]
    taken = sum(p["seconds"] for p in run["programs"])
    typical = sum(made) / len(made) if made else PROGRAM_SECONDS
    return RunRate(
        rows=run["rows"],
        seconds=run["seconds"],
        program_seconds=taken / run["workers"],
        new_machine_seconds=typical * len(run["programs"]) / run["workers"],
        programs=len(run["programs"]),
        cached=len(run["programs"]) - len(made),
        workers=run["workers"],
        bytes_per_row=size / rows,
        level=manifest.level,
        mean_atoms=atoms / rows,
        padding=manifest.settings.get("padding", FINE),
    )


def estimate(rate: RunRate, rows: float, price_per_hour: float | None) -> list[Line]:
    """Hours, and cost of all machines together, for each number in MACHINES.

    Every machine must make its own programs ready.
    """
    lines = []
    for machines in MACHINES:
        seconds = rows / machines / rate.steady + rate.new_machine_seconds
        hours = seconds / HOUR
        cost = None if price_per_hour is None else hours * machines * price_per_hour
        lines.append(Line(machines, hours, cost))
    return lines


def as_text(rate: RunRate, molecules: float, conformers: int, price_per_hour: float | None) -> str:
    """The estimate as a table, with the rate that it is based on."""
    rows = molecules * conformers
    table = [("machines", "time", "" if price_per_hour is None else "cost")]
    for line in estimate(rate, rows, price_per_hour):
        cost = "" if line.cost is None else f"{line.cost:,.0f}"
        table.append((str(line.machines), _duration(line.hours), cost))
    lines = [
        f"{molecules:,.0f} molecules x {conformers:,} conformers = {rows:,.0f} rows, "
        f"{rows * rate.bytes_per_row / 1e9:,.1f} GB of HDF5",
        f"measured: {rate.rows:,} rows in {rate.seconds:.0f} s by {rate.workers} compute processes"
        f" ({rate.level.in_words}, {rate.padding} padding; {rate.mean_atoms:.1f} atoms per "
        "molecule)",
        f"          {rate.steady:.2f} rows/s without the {rate.program_seconds:.0f} s in which "
        f"{rate.programs} programs were made ready, {rate.cached} of them from the disk cache",
        f"          on a new machine these programs take about {rate.new_machine_seconds:.0f} s",
        "",
        *text_table(table, ">8 >14 >16", gap=""),
        "",
        "For molecules like the measured ones: time grows with about the cube of the number of "
        "orbitals. Machines split the input with --shard i/n or --cluster.",
    ]
    planned = cheaper(rate.level, round(molecules), conformers)
    if planned != rate.padding:
        dearer, fewer = ("less", "more") if planned == FINE else ("more", "fewer")
        lines.append(
            f"This dataset will have {planned} padding: {dearer} time for a row than measured, and "
            f"{fewer} programs."
        )
    if price_per_hour is None:
        lines.append("--price-per-hour gives the cost, in the currency of the price.")
    return "\n".join(lines)


def _duration(hours: float) -> str:
    if hours < 1.0:
        return f"{60 * hours:.0f} min"
    return f"{hours:,.1f} h" if hours < 72 else f"{hours / 24:,.1f} days"
