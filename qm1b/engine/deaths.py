"""What is tried after a compute process has died or hung, and when a conformer is given up.

A batch whose process died is tried again conformer by conformer. A conformer that ends its process
twice, by itself, is suspected; after a death its second try has the machine to itself, since the
usual reason is memory. Rows are permanent, so an error is written only after the same processes
have computed a hydrogen molecule (`qm1b.process.suspicion`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from qm1b.engine.factory import Engine
from qm1b.engine.messages import Job
from qm1b.process.suspicion import Circumstances, Suspicion, named
from qm1b.rows.schema import Conformer

MAX_DEATHS = 2
"""Processes that a conformer by itself may end."""


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
        about = Circumstances("compute", "a hydrogen molecule", log)
        self._suspicion: Suspicion[Suspect] = Suspicion(about)

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
        who = next(iter(job.conformers))
        must_probe = self._suspicion.hold(named(who.line, who.smiles), Suspect(job, error))
        return [self._make_probe()] if must_probe else []

    def probed(self) -> tuple[list[Suspect], list[Job]]:
        """The probe was computed: the confirmed suspects, and another probe if new ones wait."""
        confirmed, must_probe = self._suspicion.confirmed()
        return confirmed, [self._make_probe()] if must_probe else []

    def probe_failed(self, job: Job, error: str) -> Job:
        """The probe once more; raises as `again`."""
        self._suspicion.probe_failed(error)
        return job

    def forget(self) -> None:
        """Forget all suspects: the run is being stopped."""
        self._suspicion.forget()


def probe(engine: Engine) -> Job:
    """A hydrogen molecule as a batch, which any sound machine computes."""
    from pyscf_ipu.molecule.molecule import Molecule

    numbers = np.array([1, 1], np.uint8)
    positions = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.4]])
    conformer = Conformer(0, "[H][H]", 0, seed=0, charge=0, numbers=numbers, positions=positions)
    return Job(engine.shape(Molecule(numbers, positions)), (conformer,), is_probe=True)
