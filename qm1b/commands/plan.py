"""`qm1b plan`: time and cost of a dataset before it is made."""

from __future__ import annotations

import json as json_text
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tyro.conf import Fixed, Suppress

from pyscf_ipu.base.command_line.options import JsonTarget
from pyscf_ipu.base.command_line.targets import TO_STDOUT, check_folders, put_json
from pyscf_ipu.base.host.temporaries import scratch_folder
from pyscf_ipu.base.terminal import counted, say
from qm1b.commands.generate import Generate, run_settings
from qm1b.errors import UserError
from qm1b.folder.stdin import PIPE
from qm1b.settings import PADDINGS, RunSettings

if TYPE_CHECKING:
    from qm1b.report.estimate import MachineRate, Need
    from qm1b.run.progress.preview import Preview


@dataclass(frozen=True)
class PlanCommand(Generate):
    """Estimate time and cost of a dataset from a short run, or on a simulated Pod (--ipu)."""

    groups: ClassVar = {
        "dataset": "molecules conformers price_per_hour",
        "measuring": "measured workers",
        "simulated IPU": "ipu json",
        "level of theory": Generate.groups["level of theory"],
        "geometries": "seed embed_timeout one_stereoisomer relax rattle_angstrom",
        "quality": "retry stability audit",
        "files": "input_format smiles_column id_column limit max_aos padding",
        "electrons": Generate.groups["electrons"],
    }
    out: Suppress[Fixed[None]] = None
    shard: Suppress[Fixed[None]] = None
    cluster: Suppress[Fixed[None]] = None
    stop_after: Suppress[Fixed[None]] = None
    allow_other_versions: Suppress[Fixed[bool]] = False
    retry_dropped: Suppress[Fixed[None]] = None
    price: Suppress[Fixed[None]] = None
    trace: Suppress[Fixed[None]] = None
    molecules: float | None = None
    """Number of molecules in the dataset, for example 1.09e6, like those of the input; if not
    given, those of the input that can be computed."""
    measured: Path | None = None
    """Folder of a run of qm1b generate on this machine; if not given, some of the molecules are
    computed now."""
    price_per_hour: float | None = None
    """Price per hour of one machine like this, in any currency."""
    ipu: str | None = None
    """Price the dataset on this simulated system instead of measuring: bow-pod4, bow-pod16,
    bow-pod64, bow-pod256, the same of gc200, or one chip."""
    json: JsonTarget = None
    """With --ipu, print the figures as JSON instead of tables, or write them to FILE.json."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from qm1b.report.estimate import as_text

        if self.molecules is not None and not 1 <= self.molecules < float("inf"):
            raise UserError(f"--molecules is {self.molecules}: it must be at least 1")
        if self.price_per_hour is not None and not 0 <= self.price_per_hour < float("inf"):
            raise UserError(f"--price-per-hour is {self.price_per_hour}: it must be 0 or more")
        if self.source == PIPE:
            raise UserError("qm1b plan reads its input more than once: give a file instead of -")
        if self.ipu is not None:
            return self._price(self.ipu)
        if self.json is not None:
            raise UserError("--json is for --ipu: give both, or neither")
        rate, need = self._measure()
        say(as_text(rate, need, self.price_per_hour))
        return 0

    def _measure(self) -> tuple[MachineRate, Need]:
        """The rate of this machine, and what the dataset needs."""
        from pyscf_ipu.base.host.cores import n_cores
        from qm1b import inputs
        from qm1b.engine import factory
        from qm1b.report.estimate import rate_of
        from qm1b.report.measure import measured
        from qm1b.run.generate import limits_of
        from qm1b.run.progress.preview import Preview, too_large

        settings = run_settings(self)
        engine = factory.build(factory.DEFAULT, settings)
        source = inputs.summarise(self.source, settings)
        limits = limits_of(settings, engine)
        preview = Preview.of(source, settings, limits, molecules=self.molecules or 0.0)
        settings = replace(settings, padding=preview.padding)
        say(self._what_it_is(preview, settings))
        if large := too_large(preview, source, settings, limits=limits):
            say(large)
        need = self._need(preview)
        if self.measured is not None:
            return rate_of(self.measured), need
        with scratch_folder() as folder:
            rate = measured(
                preview, source.sample, settings, workers=self.workers or n_cores(),
                folder=folder / "run", say=say,
            )  # fmt: skip
        return rate, need

    def _what_it_is(self, preview: Preview, settings: RunSettings) -> str:
        """The input, what of it will be computed, and how."""
        dropped = Counter(line.reason for line in preview.sample if line.reason)
        reasons = ", ".join(f"{n} {reason}" for reason, n in dropped.most_common())
        kept = len(preview.sample) - dropped.total()
        sampled = "" if preview.is_whole else f"; of {len(preview.sample)} looked at"
        return (
            f"{self.source.name}: {counted(preview.n_lines, 'line')}{sampled}: {kept} to compute"
            f"{f', {dropped.total()} dropped ({reasons})' * bool(dropped)}"
            f"{'; --keep-charged computes ions' * bool(dropped['charged'])}"
            f"{'; --open-shells computes radicals' * bool(dropped['radical'])}; "
            f"{counted(settings.conformers, 'conformer')} each, {settings.level.in_words}"
            f"{', with forces' * settings.forces}, {settings.padding} padding"
        )

    def _need(self, preview: Preview) -> Need:
        """What the dataset needs: its molecules are like those of the sample that are computed."""
        from qm1b.report.estimate import Need

        kept = [line for line in preview.sample if line.rows]
        if not kept:
            raise UserError(f"no molecule of {self.source} can be computed: see above")
        share = len(kept) / len(preview.sample)
        molecules = self.molecules or preview.n_lines * share
        programs = [preview.prices.program_seconds(shape) for shape in preview.shapes]
        return Need(
            rows=molecules * sum(line.rows for line in kept) / len(kept),
            seconds=molecules * sum(preview.line_seconds) / len(kept),
            programs=len(programs),
            program_seconds=sum(programs) / len(programs),
        )

    def _price(self, name: str) -> int:
        """The plan on a simulated system; nothing is timed."""
        from pyscf_ipu.ipu import priced_target
        from qm1b.engine.padding import cheapest
        from qm1b.report.costs.pod import accepted, pod_plan
        from qm1b.report.costs.pod_text import as_text

        if self.measured is not None or self.price_per_hour is not None:
            raise UserError("--ipu needs neither --measured nor --price-per-hour: leave them out")
        check_folders([self.json])
        system = priced_target(name)
        settings = run_settings(self)
        candidates = accepted(self.source, settings)
        molecules = self.molecules or len(candidates)
        atoms = [candidate.numbers for candidate in candidates]
        each = settings.conformers * molecules / len(atoms)
        padding = settings.padding or cheapest(atoms, each, settings)
        quiet = self.json == TO_STDOUT
        tell = (lambda _: None) if quiet else say
        plan = pod_plan(
            candidates,
            settings.level,
            system,
            rows=float(molecules * settings.conformers),
            coarse=PADDINGS.index(padding),
            tell=tell,
        )
        if self.json is not None:
            put_json(json_text.dumps(plan.to_dict(), indent=1), self.json)
        if not quiet:
            say(as_text(plan))
        return 0
