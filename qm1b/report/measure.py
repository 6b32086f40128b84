"""A short run on this machine, for the rate at which it works off priced rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pyscf_ipu.base.terminal import counted
from qm1b.engine.price import Prices
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.inputs.records import Record
from qm1b.process.display import Display, Shown
from qm1b.reference.recompute import recompute_many
from qm1b.report.estimate import MachineRate, per_shape
from qm1b.rows.batch import conformer_of
from qm1b.run.generate import Run, Summary, generate
from qm1b.run.progress.preview import Preview
from qm1b.run.progress.progress import Stats
from qm1b.settings import RunSettings

LEAST_SECONDS, LEAST_ROWS = 10.0, 2
"""The short run has so many priced seconds for each core, and so many rows at least."""
QUICK_SECONDS = 10.0
"""Three shapes are measured if a row of each takes less than this, by the table; else one."""


class Watch(Display):
    """Remembers when the first rows came.

    Args:
        say: is told of compiled programs.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.first: tuple[float, float] | None = None
        """Time and priced seconds."""

    def say(self, text: str) -> None:
        """Pass on what is said of programs."""
        if " compiled " in text or " loaded " in text:
            self._say(text)

    def begin(self, text: str) -> None:
        """Pass on what takes long."""
        self._say(text)

    def update(self, shown: Shown) -> None:
        """Look whether rows have come."""
        if self.first is None and isinstance(shown, Stats) and shown.work.done:
            self.first = time.monotonic(), shown.work.done


def measured(
    preview: Preview,
    records: Sequence[Record],
    settings: RunSettings,
    *,
    workers: int,
    folder: Path,
    say: Callable[[str], None],
) -> MachineRate:
    """Compute some of the molecules of a sample, and take the time.

    Args:
        preview: the sample, priced.
        records: it, as the input has it.
        settings: of the run that is planned.
        workers: compute processes.
        folder: for the short run; it must not exist.
        say: is told what is measured.

    Raises:
        UserError: nothing could be computed.
    """
    chosen = choice(preview)
    first, row_seconds = records[chosen[0]], _row_seconds(preview, chosen)
    wanted = workers * max(LEAST_SECONDS / row_seconds, LEAST_ROWS)
    if first.block:
        conformers, kind = 1, first.format
        chosen = alike(preview, chosen[len(chosen) // 2], round(wanted))
        text = "".join(f"{records[i].block.rstrip()}\n" for i in chosen)
    else:
        conformers, kind = max(1, round(wanted / len(chosen))), "smiles"
        text = "".join(f"{records[i].smiles}\n" for i in chosen)
    source = folder.with_suffix(".txt")
    source.write_text(text, encoding="utf-8", errors="surrogateescape")
    n_rows = conformers * len(chosen)
    say(
        f"measuring {counted(n_rows, 'row')} of {counted(len(chosen), 'molecule')}: about "
        f"{n_rows * row_seconds / workers:.0f} s, and the time of programs, which stay on disk ..."
    )
    short = replace(
        settings, conformers=conformers, input_format=kind, smiles_column=None, id_column=None,
        limit=None, audit=0.0, units=None,
    )  # fmt: skip
    watch = Watch(say)
    summary = generate(Run(source, folder, short, workers=workers), watch)
    if summary.interrupted:
        raise KeyboardInterrupt  # there is nothing to keep
    if not summary.tally.rows:
        reasons = ", ".join(summary.tally.drops)
        raise UserError(f"the short run gave no rows (dropped: {reasons}): give other molecules")
    return _rate(summary, watch, settings, folder=folder)


def _rate(summary: Summary, watch: Watch, settings: RunSettings, *, folder: Path) -> MachineRate:
    """The rate of a short run: of the rows after the first ones, if there are any."""
    stats, rows = summary.stats, []
    for path in shards.shards(folder):
        batch = shards.read_shard(path)
        rows += [batch.row(i) for i in range(len(batch))]
    since, done = watch.first or (stats.start, 0.0)
    if done > stats.work.done / 2:
        since, done = stats.start, 0.0
    seconds = stats.last_row - since - stats.idle_seconds(since)
    idle_workers = max(1.0, stats.workers / len(rows))
    made = [(event.label, event.seconds or 0.0) for event in stats.compiles if not event.cached]
    conformer = conformer_of(rows[0])
    pyscf = next(
        reference.seconds
        for _, reference in recompute_many([conformer], settings.level, 1, forces=settings.forces)
    )
    prices = Prices(settings.level, forces=settings.forces, coarse=settings.coarse)
    return MachineRate(
        priced=idle_workers * (stats.work.done - done) / max(seconds, 1e-3),
        program_seconds=per_shape(made),
        workers=stats.workers,
        rows=len(rows),
        seconds=stats.seconds,
        bytes_per_row=sum(map(_n_bytes, rows)) / len(rows),
        pyscf=stats.workers * prices.seconds(conformer.numbers.tolist()) / pyscf,
    )


def _n_bytes(row: Mapping[str, object]) -> int:
    return sum(np.asarray(value).nbytes for value in row.values())


def _row_seconds(preview: Preview, chosen: Sequence[int]) -> float:
    """The mean price of a row of some lines."""
    lines = [preview.sample[i] for i in chosen]
    return sum(line.seconds / line.rows for line in lines) / len(lines)


def alike(preview: Preview, line: int, most: int) -> list[int]:
    """Numbers of lines of one shape."""
    shape = preview.sample[line].shape
    return [i for i, other in enumerate(preview.sample) if other.shape == shape][: max(1, most)]


def choice(preview: Preview) -> list[int]:
    """Numbers of lines of the sample: where a half of the price is reached, if lines are in the
    order of the price of a row; where rows are quick, at a sixth and at five sixths, too.

    Raises:
        UserError: every line is left out.
    """
    order = sorted(
        (i for i, line in enumerate(preview.sample) if line.rows),
        key=lambda i: preview.sample[i].seconds,
    )
    if not order:
        raise UserError("no molecule of the input can be computed: qm1b generate says why")
    total, reached, chosen = sum(preview.line_seconds), 0.0, list[int]()
    places = [total / 6, total / 2, 5 * total / 6]
    for i in order:
        reached += preview.sample[i].seconds
        while places and reached >= places[0] * (1 - 1e-9):
            chosen.append(i)
            places.pop(0)
    lines = [preview.sample[i] for i in chosen]
    quick = all(line.seconds / line.rows < QUICK_SECONDS for line in lines)
    return list(dict.fromkeys(chosen if quick else chosen[1:2]))
