"""Time and cost of a dataset: the price of its rows, and the rate of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyscf_ipu.base.terminal import counted, text_table
from qm1b.engine.price import Prices
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.shard_folder import ShardFolder
from qm1b.settings import FINE, PADDINGS

HOUR = 3600.0
MACHINES = (1, 4, 16, 64, 256)


@dataclass(frozen=True)
class MachineRate:
    """The speed of a machine, measured by a run."""

    rows: int
    seconds: float
    """Time from start to end."""
    workers: int
    priced: float
    """Priced seconds (`qm1b.engine.price`) per second of all workers, without programs."""
    bytes_per_row: float
    program_seconds: float | None = None
    """Of a core, to make the programs of a shape; None if all came from the disk cache."""
    pyscf: float | None = None
    """Priced seconds per second of PySCF, with a process on every core; None if nobody looked."""


@dataclass(frozen=True)
class Need:
    """What a dataset needs: the part of `qm1b plan` that no machine changes."""

    rows: float
    seconds: float
    """Price of the rows."""
    programs: int
    """Shapes, each with its programs."""
    program_seconds: float
    """What the programs of a shape take a core, by the table."""


@dataclass(frozen=True)
class MachineTime:
    """The estimate for a number of machines."""

    machines: int
    hours: float
    compiling: float
    """Hours, in which every machine makes its own programs."""
    cost: float | None


def rate_of(folder: Path) -> MachineRate:
    """The rate of a folder's last run on one machine.

    Raises:
        UserError: no run there, none with rows, or only runs on a cluster.
    """
    source = ShardFolder(folder)
    source.check()
    manifest, needed = source.manifest, ("rows", "workers", "seconds", "programs")
    filled = [run for run in manifest.runs if run.get("rows", 0) >= 1]
    runs = [r for r in filled if set(needed) <= r.keys() and isinstance(r["workers"], int)]
    if filled and not runs:
        raise UserError(
            f"folder {folder} was computed on a cluster, which gives no rate of one machine; "
            "measure with a qm1b generate without --cluster, or leave --measured out"
        )
    if not runs:
        raise UserError(f"folder {folder} holds no run that gave rows; leave --measured out")
    run, settings = runs[-1], manifest.settings
    prices = Prices(
        manifest.level,
        forces=settings.get("forces", False),
        coarse=PADDINGS.index(settings.get("padding", FINE)),
        is_simulated="machine" in settings,
    )
    rows = size = 0
    price = 0.0
    for path in shards.shards(folder):
        shard = shards.read_shard(path)
        rows, size = rows + len(shard), size + sum(c.nbytes for c in shard.columns.values())
        price += sum(prices.seconds(shard.row(i)["numbers"]) for i in range(len(shard)))
    if run["rows"] > rows:
        raise UserError(
            f"folder {folder}: by the manifest a run gave {run['rows']} rows, but the shards hold "
            f"{rows}; measure with another qm1b generate, or leave --measured out"
        )
    taken = sum(p["seconds"] for p in run["programs"]) / run["workers"]
    made = [p for p in run["programs"] if not p["cached"]]
    shapes = {p["shape"] for p in made}
    program = sum(p["seconds"] for p in made) / len(shapes) if shapes else None
    return MachineRate(
        rows=run["rows"],
        seconds=run["seconds"],
        workers=run["workers"],
        priced=price * run["rows"] / rows / max(run["seconds"] - taken, 1e-3),
        bytes_per_row=size / rows,
        program_seconds=program,
    )


def estimate(rate: MachineRate, need: Need, price_per_hour: float | None) -> list[MachineTime]:
    """Hours, and cost of all machines together, for each number in MACHINES."""
    times = []
    program = rate.program_seconds or need.program_seconds
    compiling = need.programs * program / min(rate.workers, max(1, need.programs)) / HOUR
    for machines in MACHINES:
        hours = need.seconds / rate.priced / machines / HOUR + compiling
        cost = None if price_per_hour is None else hours * machines * price_per_hour
        times.append(MachineTime(machines, hours, compiling, cost=cost))
    return times


def as_text(rate: MachineRate, need: Need, price_per_hour: float | None) -> str:
    """The estimate in a sentence and a table, with the rate that it is based on."""
    times = estimate(rate, need, price_per_hour)
    table = [("machines", "time", "" if price_per_hour is None else "cost")]
    for line in times:
        cost = "" if line.cost is None else f"{line.cost:,.0f}"
        table.append((str(line.machines), _duration(line.hours), cost))
    one, pyscf = times[0], ""
    if rate.pyscf is not None:
        pyscf = f"; a PySCF loop: {_duration(need.seconds / rate.pyscf / HOUR)}"
    known = "measured" if rate.program_seconds else "by the table; those measured were on disk"
    lines = [
        f"{need.rows:,.0f} rows: {_duration(one.hours)}, {_duration(one.compiling)} of them "
        f"compiling{'' if rate.program_seconds else ' if no program is on disk'}{pyscf}",
        "",
        *text_table(table, ">8 >14 >16", gap=""),
        "",
        f"measured: {counted(rate.rows, 'row')} in {rate.seconds:.0f} s by "
        f"{rate.workers} compute processes; "
        f"programs: {counted(need.programs, 'shape')}, "
        f"{rate.program_seconds or need.program_seconds:.0f} s each on a core ({known})",
        f"disk: {need.rows * rate.bytes_per_row / 1e6:,.1f} MB of HDF5",
        "Every machine makes its own programs, unless they are on its disk from an earlier run.",
        "Machines split the input with --shard i/n or --cluster.",
    ]
    if price_per_hour is None:
        lines.append("--price-per-hour gives the cost, in the currency of the price.")
    return "\n".join(lines)


def _duration(hours: float) -> str:
    if hours < 0.05:
        return f"{HOUR * hours:.0f} s"
    if hours < 2.0:
        return f"{60 * hours:.0f} min"
    return f"{hours:,.1f} h" if hours < 72 else f"{hours / 24:,.1f} days"
