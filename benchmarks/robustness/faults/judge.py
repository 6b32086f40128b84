"""What must be true after a command that was struck, and after it was given again."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.robustness.faults.child import Ended
from benchmarks.robustness.faults.contents import GROWING, is_hidden
from benchmarks.robustness.faults.shim import KILL
from pyscf_ipu.base.terminal import EXIT_USER_ERROR

LOST, HALF, STUCK, TRACEBACK, LEFT, MUTE = "lost", "half", "stuck", "traceback", "left", "mute"
KINDS = (LOST, HALF, STUCK, TRACEBACK, LEFT, MUTE)
"""Lost: not the result of an undisturbed run in the end.  Half: a file that is not whole has its
name.  Stuck: no end, or no good end at the second try.  Left: a temporary file stays for ever.
Mute: an error without a sentence."""

RENEWED = ("manifest.json", "last.ckpt", "best.ckpt")
"""Files that are replaced while a command runs: any whole content belongs there."""

CACHED = "program-"
"""A file that a command does without, if it cannot be written."""

OF_SYSTEM = "tmp/"
"""The folder of temporary files, in which a killed process may leave something."""

State = Mapping[str, str]
Wrong = tuple[str, str]


class Reference(NamedTuple):
    """An undisturbed run."""

    before: State
    """The folder before."""
    after: State
    """The folder after."""
    status: int


def first_run(known: Reference, ended: Ended, fault: str, here: State) -> Iterator[Wrong]:
    """What is wrong with the run that was struck."""
    if ended.status is None:
        yield STUCK, "the command does not end"
    if "Traceback" in ended.said:
        yield TRACEBACK, ended.said.strip().splitlines()[-1][:200]
    elif ended.status == -9 and fault == KILL:
        pass
    elif ended.status not in (None, known.status):
        if ended.status is not None and ended.status < 0:
            yield TRACEBACK, f"the process died of signal {-ended.status}"
        elif not ended.said.strip():
            yield MUTE, f"status {ended.status} and no word"
    elif ended.status == known.status:
        unneeded = {name for name in known.after.keys() - here.keys() if CACHED in name}
        yield from (_lost(name) for name in differing(known.after, here) if name not in unneeded)


def files_between(known: Reference, here: State, renews: bool) -> Iterator[Wrong]:
    """Files that have their names, but neither the old content nor the new, after a fault."""
    for name, content in here.items():
        if is_hidden(name) or name.startswith(OF_SYSTEM):
            continue
        if content in (known.before.get(name), known.after.get(name)):
            continue
        short = Path(name).name
        if content.startswith("torn"):
            yield HALF, f"{name} is {content}"
        elif short in GROWING:
            states = (known.before.get(name, ""), known.after.get(name, ""))
            if not {*content.split("\n")} <= {*"\n".join(states).split("\n")}:
                yield HALF, f"{name} has lines of no undisturbed run"
        elif short not in RENEWED:
            yield HALF, f"{name} is neither the old file nor the new one"
    if renews:
        changed = [n for n in known.before if known.after.get(n) != known.before[n]]
        if len({here[n] == known.before[n] for n in changed if n in here}) > 1:
            yield HALF, "old files beside new ones"
        return
    for name in known.before:
        if name not in here and name in known.after:
            yield LOST, f"{name} was there before"


def second_run(known: Reference, again: Ended, here: State, may_refuse: bool) -> list[Wrong]:
    """What is wrong after the same command was given again."""
    if may_refuse and again.status == EXIT_USER_ERROR:
        return []
    if "Traceback" in again.said:
        return [(TRACEBACK, f"again: {again.said.strip().splitlines()[-1][:200]}")]
    if again.status != known.status:
        said = " ".join(again.said.split())[-200:]
        return [(STUCK, f"again: status {again.status}: {said}")]
    return [_lost(name) for name in differing(known.after, here)]


def is_whole(known: Reference, here: State) -> bool:
    """Whether a folder is that of an undisturbed run, down to the hidden files."""
    kept = {name: text for name, text in here.items() if not name.startswith(OF_SYSTEM)}
    return kept == {n: text for n, text in known.after.items() if not n.startswith(OF_SYSTEM)}


def leftovers(known: Reference, here: State, removed: bool) -> Iterator[Wrong]:
    """Temporary files that stay; where the process could not remove them, not the system's."""
    for name in sorted(here.keys() - known.after.keys()):
        of_system = name.startswith(OF_SYSTEM)
        if (is_hidden(name) and not of_system) or (of_system and removed):
            yield LEFT, name


def differing(after: State, here: State) -> list[str]:
    """Files that are not those of an undisturbed run."""
    names = sorted({*after, *here})
    return [
        name
        for name in names
        if after.get(name) != here.get(name)
        and not is_hidden(name)
        and not name.startswith(OF_SYSTEM)
    ]


def _lost(name: str) -> Wrong:
    return LOST, f"{name} is not that of an undisturbed run"
