"""A short run on this machine, for the rate at which it works off priced rows."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pyscf_ipu.base.terminal import counted
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.inputs.records import Record
from qm1b.process.display import Display, Shown
from qm1b.reference.recompute import recompute_many
from qm1b.report.estimate import MachineRate, rate_of
from qm1b.rows.batch import conformer_of
from qm1b.run.generate import Run, Summary, generate
from qm1b.run.progress.preview import Preview
from qm1b.run.progress.progress import Stats
from qm1b.settings import RunSettings

LEAST_SECONDS, LEAST_ROWS = 10.0, 2
"""Priced seconds of the short run for each core, and its rows for each core, at least."""


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
    chosen = choice(preview, workers)
    line, first = preview.sample[chosen[0]], records[chosen[0]]
    row_seconds = line.seconds / line.rows
    wanted = workers * max(LEAST_SECONDS / row_seconds, LEAST_ROWS)
    if first.block:
        conformers, kind = 1, first.format
        end = "$$$$\n" if kind == "sdf" else ""
        text = "".join(f"{records[i].block.rstrip()}\n{end}" for i in chosen)
    else:
        conformers, kind = math.ceil(wanted / len(chosen)), "smiles"
        text = "".join(f"{records[i].smiles}\n" for i in chosen)
    source = folder.with_suffix(".txt")
    source.write_text(text, encoding="utf-8", errors="surrogateescape")
    n_rows = conformers * len(chosen)
    say(
        f"measuring {counted(n_rows, 'row')} of {counted(len(chosen), 'molecule')}: about "
        f"{n_rows * row_seconds / workers:.0f} s; besides the programs, which stay on disk, and "
        "one of them by PySCF ..."
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
    return _rate(summary, watch, preview, settings=settings, folder=folder)


def _rate(
    summary: Summary, watch: Watch, preview: Preview, settings: RunSettings, folder: Path
) -> MachineRate:
    """The rate of a short run: of the rows after the first ones, if there are any."""
    stats = summary.stats
    since, done = watch.first or (stats.start, 0.0)
    if done > stats.work.done / 2:
        since, done = stats.start, 0.0
    seconds = stats.last_row - since - stats.idle_seconds(since)
    idle_workers = max(1.0, stats.workers / summary.tally.rows)
    conformer = conformer_of(shards.read_shard(shards.shards(folder)[0]).row(0))
    ((_, reference),) = recompute_many([conformer], settings.level, 1, forces=settings.forces)
    pyscf = preview.prices.seconds(conformer.numbers) / reference.seconds
    return replace(
        rate_of(folder),
        priced=idle_workers * (stats.work.done - done) / max(seconds, 1e-3),
        pyscf=stats.workers * pyscf,
    )


def choice(preview: Preview, most: int) -> list[int]:
    """Numbers of lines of the sample, of one shape: that at which half of the price is reached, if
    lines are in the order of their price.

    Raises:
        UserError: every line is left out.
    """
    kept = [i for i, line in enumerate(preview.sample) if line.rows]
    if not kept:
        raise UserError("no molecule of the input can be computed: qm1b generate says why")
    order = sorted(kept, key=lambda i: preview.sample[i].seconds)
    reached = itertools.accumulate(preview.sample[i].seconds for i in order)
    half = sum(preview.line_seconds) / 2
    middle = next(i for i, seconds in zip(order, reached, strict=True) if seconds >= half)
    shape = preview.sample[middle].shape
    alike = (i for i in kept if i != middle and preview.sample[i].shape == shape)
    return [middle, *itertools.islice(alike, most - 1)]
