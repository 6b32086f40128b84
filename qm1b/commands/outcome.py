"""What `qm1b generate` prints at its end."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .calling import this_command

if TYPE_CHECKING:
    from ..generate import Summary

FIRST_ROWS = 8


def outcome(summary: Summary) -> str:
    """What lies in the folder now, and how fast this run was, in a few lines."""
    stats, tally = summary.stats, summary.tally
    before = f" ({stats.rows_before} of them from earlier runs)" if stats.rows_before else ""
    rate = (stats.rows - stats.rows_before) / max(stats.seconds, 1e-3)
    not_cached = [event for event in stats.compiles if not event.cached]
    dropped = ", ".join(f"{n} {reason}" for reason, n in tally.drops.most_common()) or "none"
    return (
        f"{tally.rows} conformers of {tally.kept}{before} in {stats.seconds:.0f} s "
        f"({rate:.1f}/s, compiling included), {tally.not_converged} not converged\n"
        f"dropped: {dropped}\n"
        f"programs: {len(not_cached)} compiled in "
        f"{sum(event.seconds or 0.0 for event in not_cached):.0f} s (all workers together), "
        f"{len(stats.compiles) - len(not_cached)} loaded from the disk cache\n"
        f"compute processes idle for lack of conformers: {stats.starved_seconds:.1f} s (together)\n"
    )


def how_to_go_on(summary: Summary, out: Path, out_was_given: bool) -> str:
    """After an interrupt: how far it came, and the command that goes on."""
    again = shlex.join([*sys.argv[1:], *([] if out_was_given else ["--out", str(out)])])
    return (
        f"Interrupted: {summary.tally.lines} of {summary.stats.n_lines} lines are done. "
        f"To go on: {this_command()} {again}"
    )


def print_first_rows(folder: Path) -> None:
    """The first rows of a dataset, as a table."""
    from ..head import first_rows

    print(first_rows(folder, FIRST_ROWS))
