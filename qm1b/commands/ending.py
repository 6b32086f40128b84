"""What a command prints at its end: the outcome of a run, and how to resume it."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyscf_ipu.base.terminal import counted, say
from qm1b.process.display import speed

if TYPE_CHECKING:
    from qm1b.run.generate import Summary


def this_command() -> str:
    """How to call `qm1b` again from here."""
    if shutil.which("qm1b"):
        return "qm1b"
    script = Path(sys.argv[0])
    if script.name != "qm1b":
        return "python -m qm1b.cli"
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)


def outcome(summary: Summary) -> str:
    """What the folder holds now, and how fast this run was."""
    stats, tally = summary.stats, summary.tally
    before = f" ({stats.rows_before} of them from earlier runs)" if stats.rows_before else ""
    rate = speed((stats.rows - stats.rows_before) / max(stats.seconds, 1e-3))
    not_cached = [event for event in stats.compiles if not event.cached]
    dropped = ", ".join(f"{n} {reason}" for reason, n in tally.drops.most_common()) or "none"
    troubles = stats.troubles.most_common()
    failed = "".join(f"{counted(n, 'row')}: {what}; see workers.log\n" for what, n in troubles)
    return (
        f"{counted(tally.rows, 'conformer')} of {tally.kept}{before} in {stats.seconds:.0f} s "
        f"({rate}, compiling included), {tally.not_converged} not converged\n"
        f"dropped: {dropped}\n"
        f"programs: {len(not_cached)} compiled in "
        f"{sum(event.seconds or 0.0 for event in not_cached):.0f} s (all workers together), "
        f"{len(stats.compiles) - len(not_cached)} loaded from the disk cache\n"
        f"compute processes waited for conformers: {stats.starved_seconds:.1f} s (in total)\n"
        f"{failed}"
    )


def how_to_go_on(summary: Summary, out: Path, out_was_given: bool) -> str:
    """After an end before the end: how far the run came, and the command that resumes it."""
    again = shlex.join([*sys.argv[1:], *([] if out_was_given else ["--out", str(out)])])
    how = "Stopped in time" if summary.stopped_in_time else "Interrupted"
    lost = f", {counted(summary.stats.lost_rows, 'conformer')} of the others are not kept"
    more = summary.stats.rows == summary.stats.rows_before and summary.stopped_in_time
    return (
        f"{how}: {summary.tally.lines} of {summary.stats.n_lines} lines are done"
        f"{lost * bool(summary.stats.lost_rows)}. "
        f"{'No work unit was finished: give --stop-after more time. ' * more}"
        f"To resume: {this_command()} {again}"
    )


def warn_if_incomplete(folder: Path) -> None:
    """One line on stderr if the run in a folder is not complete.

    Raises:
        UserError: no run there, or a shard is lost.
    """
    from qm1b.folder.completeness import notice
    from qm1b.folder.shard_folder import ShardFolder

    warning = notice(ShardFolder(folder))
    if warning:
        say(f"warning: {warning}", to_stderr=True)
