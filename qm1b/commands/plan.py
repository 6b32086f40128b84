"""`qm1b plan`: time and cost of a dataset before it is made."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import tyro

from pyscf_ipu.base.command_line.options import JsonTarget
from pyscf_ipu.base.command_line.targets import TO_STDOUT, check_folders, put_json
from pyscf_ipu.base.host.temporaries import scratch_folder
from pyscf_ipu.base.terminal import say
from qm1b.errors import UserError

CONFORMERS = 1000
MEASURED_LINES = 60
MEASURED_CONFORMERS = 20
FEWER_CONFORMERS = 2
"""At other presets than qm1b, where a row takes up to a thousand times as long."""


@dataclass(frozen=True)
class PlanCommand:
    """Estimate time and cost of a dataset from a measured rate, or on a simulated Pod (--ipu)."""

    file: tyro.conf.Positional[Path | None] = None
    """Molecules of the dataset; with --ipu their shapes are priced, else as --smiles-file."""
    molecules: float | None = None
    """Number of molecules in the dataset, for example 1.09e6; with --ipu, if not given, those of
    FILE that can be computed."""
    conformers: int | None = None
    """Conformers per molecule; if not given 1000, with --ipu the preset's number, or 1 for given
    geometries."""
    ipu: str | None = None
    """Price the dataset on this simulated system instead of measuring: bow-pod4, bow-pod16,
    bow-pod64, bow-pod256, the same of gc200, or one chip."""
    json: JsonTarget = None
    """With --ipu, print the figures as JSON instead of tables, or write them to FILE.json."""
    measured: Path | None = None
    """Folder of a run of qm1b generate on this machine; if not given, a short run is made now."""
    smiles_file: Path | None = None
    """Molecules for the short run; default: the bundled sample."""
    preset: str = "qm1b"
    """Level of theory of the short run, as of qm1b generate. At other levels than qm1b's even a
    short run takes long: --measured takes a run that you have."""
    price_per_hour: float | None = None
    """Price per hour of one machine like this, in any currency."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from qm1b.report.estimate import as_text, rate_of

        for name, value in (("molecules", self.molecules), ("conformers", self.conformers)):
            if value is not None and not 1 <= value < float("inf"):
                raise UserError(f"--{name} is {value}: it must be at least 1")
        if self.ipu is not None:
            return self._price(self.ipu)
        if self.json is not None:
            raise UserError("--json is for --ipu: give both, or neither")
        if self.molecules is None:
            raise UserError("give --molecules, the number of molecules in the dataset")
        if self.price_per_hour is not None and not 0 <= self.price_per_hour < float("inf"):
            raise UserError(f"--price-per-hour is {self.price_per_hour}: it must be 0 or more")
        if self.measured is not None:
            rate = rate_of(self.measured)
        else:
            with scratch_folder() as folder:
                rate = rate_of(self._measure(folder / "run"))
        say(as_text(rate, self.molecules, self.conformers or CONFORMERS, self.price_per_hour))
        return 0

    def _price(self, name: str) -> int:
        """The plan on a simulated system; nothing is timed."""
        from pyscf_ipu.ipu import priced_target
        from qm1b.commands.generate import SAMPLE, Generate, run_settings
        from qm1b.engine.padding import cheaper
        from qm1b.report.costs.pod import accepted, pod_plan
        from qm1b.report.costs.pod_text import as_text
        from qm1b.settings import COARSE

        if self.measured is not None or self.price_per_hour is not None:
            raise UserError("--ipu needs neither --measured nor --price-per-hour: leave them out")
        check_folders([self.json])
        system = priced_target(name)
        source = self.file or self.smiles_file or SAMPLE
        settings = run_settings(Generate(source=source, preset=self.preset))
        each = self.conformers or settings.conformers
        candidates = accepted(source, settings)
        molecules = self.molecules or len(candidates)
        coarse = cheaper(settings.level, round(molecules), each) == COARSE
        quiet = self.json == TO_STDOUT
        tell = (lambda _: None) if quiet else say
        plan = pod_plan(
            candidates,
            settings.level,
            system,
            rows=float(molecules * each),
            coarse=coarse,
            tell=tell,
        )
        if self.json is not None:
            put_json(json.dumps(plan.to_dict(), indent=1), self.json)
        if not quiet:
            say(as_text(plan))
        return 0

    def _measure(self, out: Path) -> Path:
        """A short run: its programs come from the disk cache if they were ever made here.

        It has the padding of the dataset that is planned.
        """
        from pyscf_ipu.settings import preset
        from qm1b.commands.generate import SAMPLE, Generate, run_settings
        from qm1b.engine.padding import cheaper
        from qm1b.report.estimate import FEWEST_ROWS
        from qm1b.run.generate import Run, generate

        quick = preset(self.preset) is preset("qm1b")
        each = MEASURED_CONFORMERS if quick else FEWER_CONFORMERS
        source = self.smiles_file or self.file or SAMPLE
        flags = Generate(
            source=source,
            preset=self.preset,
            limit=MEASURED_LINES,
            conformers=each,
            input_format=_smiles_format(source),
        )
        say(
            f"measuring: {each} conformers of each of the first {MEASURED_LINES} "
            f"molecules of {source.name} ...",
        )
        settings = run_settings(flags)
        planned = cheaper(settings.level, round(self.molecules or 1), self.conformers or CONFORMERS)
        summary = generate(Run(source, out, replace(settings, padding=planned)))
        if summary.interrupted:
            raise KeyboardInterrupt  # there is nothing to keep
        if summary.tally.rows < FEWEST_ROWS:
            raise UserError(
                f"the short run gave {summary.tally.rows} rows from {source}, and {FEWEST_ROWS} "
                "are needed for a rate; give a --smiles-file with more molecules that can be "
                "computed"
            )
        return out


def _smiles_format(source: Path) -> str:
    """The input's format; refuses geometries, which have no conformers to estimate."""
    from qm1b import inputs

    kind = inputs.resolve(source)
    if kind in inputs.GEOMETRIES:
        raise UserError(
            f"qm1b plan needs SMILES, but {source} looks like {kind}; give a --smiles-file of "
            "SMILES, or as --measured the folder of a run that computed these geometries"
        )
    return kind
