"""When worker processes die: is it a molecule, or is it the machine?

A molecule that keeps ending its process is suspected, and held back. What becomes of it is written
for good, so first the same processes compute a probe, which any sound machine can. If they cannot
do that either, the run ends, and nothing is written that another try would mend.

The compute processes (`qm1b.engine.deaths`) and those of RDKit (`qm1b.conformers.embed_pool`)
decide by themselves what makes a molecule suspect.
"""

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from qm1b.errors import UserError

MAX_PROBES = 3
"""Processes in a row that may end with the probe: somebody may have killed one by hand."""

SHOWN = 5
"""Molecules that a message names."""

Held = TypeVar("Held")
"""What is known of a suspected molecule."""


@dataclass(frozen=True)
class Circumstances:
    """What a message says of the processes."""

    kind: str
    """compute or embedding."""
    probe: str
    """The probe, in words."""
    log: Path
    """Takes what the processes print."""


class Suspicion(Generic[Held]):
    """The suspected molecules, until a probe has shown that the machine is sound."""

    def __init__(self, circumstances: Circumstances) -> None:
        self._circumstances = circumstances
        self._waiting: list[tuple[str, Held]] = []
        self._probed: list[tuple[str, Held]] = []
        self._failed_probes = 0

    def __len__(self) -> int:
        """Molecules that are held back."""
        return len(self._waiting) + len(self._probed)

    def hold(self, name: str, suspect: Held) -> bool:
        """Hold a molecule back; returns whether a probe must be sent now."""
        self._waiting.append((name, suspect))
        return self._next()

    def confirmed(self) -> tuple[list[Held], bool]:
        """The probe was computed: the suspects it was for, and whether to send one for others."""
        found, self._probed, self._failed_probes = self._probed, [], 0
        return [suspect for _, suspect in found], self._next()

    def probe_failed(self, error: str) -> None:
        """The probe ended its process too, and is to be sent once more.

        Raises:
            UserError: it did so MAX_PROBES times in a row.
        """
        self._failed_probes += 1
        if self._failed_probes < MAX_PROBES:
            return
        names = list(dict.fromkeys(name for name, _ in [*self._probed, *self._waiting]))
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        about = self._circumstances
        raise UserError(
            f"{about.kind} processes keep dying ({error}): with {', '.join(names[:SHOWN])}{more}, "
            f"and then with {about.probe} too. So the cause is this machine: too little memory, a "
            f"resource limit or a broken installation; see {about.log}. Fix the cause or use fewer "
            "--workers, then run the same command to resume; nothing was written for the batches "
            "in progress."
        )

    def forget(self) -> None:
        """Forget all suspects: the run is being stopped."""
        self._waiting, self._probed = [], []

    def _next(self) -> bool:
        """Whether there are suspects, and no probe is under way; they are then those probed."""
        if self._probed or not self._waiting:
            return False
        self._probed, self._waiting = self._waiting, []
        return True


def named(line: int, smiles: str) -> str:
    """A molecule, as a message names it."""
    return f"line {line} ({smiles or 'without SMILES'})"


def how_it_died(kind: str, code: int | None) -> str:
    """The end of a process in words; a negative exit code is the signal."""
    if code is None or code >= 0:
        return f"the {kind} process died, exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"the {kind} process died of {name}"
