"""When compute processes die or hang: is it a molecule, or is it the machine?

A batch that took its process along is tried again conformer by conformer. One that ends its process
twice, by itself, is a candidate for an error in its row; after a death the second try has the
machine to itself, since the usual reason is memory. A row is for ever, so the verdict waits until
the same processes have computed a hydrogen molecule: if they cannot do that either, the run ends
and nothing is written that another try would make good.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .compute import Job
from .errors import UserError

MAX_DEATHS = 2
"""Processes that a conformer by itself may end."""

MAX_PROBES = 3
"""Processes in a row that may end with the probe: one may meet an operator's kill."""

SHOWN = 5
"""Molecules that a message names."""


@dataclass(frozen=True)
class Suspect:
    """A conformer that ended processes by itself."""

    job: Job
    error: str


class Deaths:
    """Conformers under suspicion. `make_probe` gives the batch that any sound machine computes."""

    def __init__(self, make_probe: Callable[[], Job], log: Path) -> None:
        self._make_probe = make_probe
        self._log = log
        self._held: list[Suspect] = []
        self._probed: list[Suspect] = []
        self._failed_probes = 0

    def again(self, job: Job, error: str, hung: bool) -> list[Job]:
        """The batches to try after a batch has lost its process.

        Raises:
            UserError: the machine cannot compute the probe either.
        """
        if job.is_probe:
            return [self.probe_failed(job, error)]
        if len(job.conformers) > 1:
            return job.one_by_one()
        deaths = job.deaths + 1
        if deaths < MAX_DEATHS:
            return [replace(job, is_retry=True, deaths=deaths, alone=not hung)]
        self._held.append(Suspect(job, error))
        return self._next_probe()

    def probed(self) -> tuple[list[Suspect], list[Job]]:
        """The probe was computed: who is convicted, and another probe if new suspects wait."""
        convicted, self._probed, self._failed_probes = self._probed, [], 0
        return convicted, self._next_probe()

    def forget(self) -> None:
        """No verdicts any more: the run is being stopped."""
        self._held, self._probed = [], []

    def _next_probe(self) -> list[Job]:
        """A probe, if there are suspects and none is under way."""
        if self._probed or not self._held:
            return []
        self._probed, self._held = self._held, []
        return [self._make_probe()]

    def probe_failed(self, job: Job, error: str) -> Job:
        """The probe once more; raises as `again`."""
        self._failed_probes += 1
        if self._failed_probes < MAX_PROBES:
            return job
        suspects = [*self._probed, *self._held]
        lines = dict.fromkeys(
            f"line {c.line} ({c.smiles or 'without SMILES'})"
            for suspect in suspects
            for c in suspect.job.conformers
        )
        more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        raise UserError(
            f"compute processes keep ending ({error}): with {', '.join([*lines][:SHOWN])}{more}, "
            "and then with a hydrogen molecule too, so it is this machine: its memory, a limit, a "
            f"broken installation. {self._log} may say more. Nothing was written of what was under "
            "way; mend it, or give fewer --workers, and the same command goes on."
        )


def how_it_died(code: int | None) -> str:
    """The end of a process in words; a negative exit code is the signal."""
    if code is None or code >= 0:
        return f"the compute process died, exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"the compute process died of {name}"
