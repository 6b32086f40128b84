"""When compute processes die or hang: is it a molecule, or is it the machine?

A batch whose process died is tried again conformer by conformer. A conformer that ends its process
twice, by itself, is suspected; after a death its second try has the machine to itself, since the
usual reason is memory. Rows are permanent, so an error is written only after the same processes
have computed a hydrogen molecule. If they cannot do that either, the run ends, and nothing is
written that another try would mend.
"""

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from qm1b.engine.factory import Engine
from qm1b.engine.messages import Job
from qm1b.errors import UserError
from qm1b.rows.schema import Conformer

MAX_DEATHS = 2
"""Processes that a conformer by itself may end."""

MAX_PROBES = 3
"""Processes in a row that may end with the probe: somebody may have killed one by hand."""

SHOWN = 5
"""Molecules that a message names."""


@dataclass(frozen=True)
class Suspect:
    """A conformer that ended processes by itself."""

    job: Job
    error: str


class Deaths:
    """Conformers under suspicion."""

    def __init__(self, make_probe: Callable[[], Job], log: Path) -> None:
        """Suspect nobody yet.

        Args:
            make_probe: makes a batch that any sound machine computes.
            log: the workers' log, for messages.
        """
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
        """The probe was computed: the confirmed suspects, and another probe if new ones wait."""
        confirmed, self._probed, self._failed_probes = self._probed, [], 0
        return confirmed, self._next_probe()

    def forget(self) -> None:
        """Forget all suspects: the run is being stopped."""
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
            f"compute processes keep dying ({error}): with {', '.join([*lines][:SHOWN])}{more}, "
            "and then with a hydrogen molecule too. So the cause is this machine: too little "
            "memory, a resource limit or a broken installation; see "
            f"{self._log}. Fix the cause or use fewer --workers, then run the same command to "
            "resume; nothing was written for the batches in progress."
        )


def probe(engine: Engine) -> Job:
    """A hydrogen molecule as a batch, which any sound machine computes."""
    from pyscf_ipu.molecule.molecule import Molecule

    numbers = np.array([1, 1], np.uint8)
    positions = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.4]])
    conformer = Conformer(0, "[H][H]", 0, 0, 0, numbers, positions)
    return Job(engine.shape(Molecule(numbers, positions)), (conformer,), is_probe=True)


def how_it_died(code: int | None) -> str:
    """The end of a process in words; a negative exit code is the signal."""
    if code is None or code >= 0:
        return f"the compute process died, exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"the compute process died of {name}"
