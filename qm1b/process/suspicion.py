"""When worker processes die: is it a molecule, or is it the machine?

A molecule that keeps ending its process is suspected, and held back. What becomes of it is written
for good, so first the same processes compute a probe, which any sound machine can. If they cannot
do that either, the run ends, and nothing is written that another try would mend.

`qm1b.process.pool` decides when a molecule is suspected.
"""

import signal
from pathlib import Path
from typing import Generic

from qm1b.errors import UserError
from qm1b.process.jobs import Lost, Work

MAX_PROBES = 3
"""Processes in a row that may end with the probe: somebody may have killed one by hand."""

NO_SMILES = "without SMILES"
SHOWN = 5
"""Molecules that a message names."""


class Suspicion(Generic[Work]):
    """The suspected molecules, until a probe has shown that the machine is sound."""

    def __init__(self, kind: str, probe: str, log: Path) -> None:
        """Suspect nobody yet.

        Args:
            kind: what the processes do: compute or embedding.
            probe: the probe, in words.
            log: takes what the processes print.
        """
        self._kind, self._probe, self._log = kind, probe, log
        self._waiting: list[Lost[Work]] = []
        self._probed: list[Lost[Work]] = []
        self._failed_probes = 0

    def __len__(self) -> int:
        """Molecules that are held back."""
        return len(self._waiting) + len(self._probed)

    def hold(self, suspect: Lost[Work]) -> bool:
        """Hold a molecule back; returns whether a probe must be sent now."""
        self._waiting.append(suspect)
        return self._next()

    def confirmed(self) -> tuple[list[Lost[Work]], bool]:
        """The probe was computed: the suspects it was for, and whether to send one for others."""
        confirmed, self._probed, self._failed_probes = self._probed, [], 0
        return confirmed, self._next()

    def probe_failed(self, error: str) -> None:
        """The probe ended its process too, and is to be sent once more.

        Raises:
            UserError: it did so MAX_PROBES times in a row.
        """
        self._failed_probes += 1
        if self._failed_probes < MAX_PROBES:
            return
        suspects = [item for lost in [*self._probed, *self._waiting] for item in lost.job.items]
        names = list(dict.fromkeys(f"line {s.line} ({s.smiles or NO_SMILES})" for s in suspects))
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise UserError(
            f"{self._kind} processes keep dying ({error}): with {', '.join(names[:SHOWN])}{more}, "
            f"and then with {self._probe} too. So the cause is this machine: too little memory, a "
            f"resource limit or a broken installation; see {self._log}. Fix the cause or use fewer "
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


def how_it_died(kind: str, code: int | None) -> str:
    """The end of a process in words; a negative exit code is the signal."""
    if code is None or code >= 0:
        return f"the {kind} process died, exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"the {kind} process died of {name}"
