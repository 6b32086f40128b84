"""`schnet price`: a training or predictions on the simulated IPU."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pyscf_ipu.base.command_line.options import JsonTarget
from pyscf_ipu.base.command_line.targets import check_folders, put_json, writing
from schnet.errors import UserError
from schnet.training.costs.layout import PodLayout

if TYPE_CHECKING:
    import numpy as np

    from schnet.training.costs.training_price import TrainingPrice


@dataclass(frozen=True)
class Price:
    """Price a training on a simulated system of IPUs: one replica of the network on each, or on
    several that form a pipeline."""

    preset: Literal["small", "schnet-9m"] = "schnet-9m"
    """Size of the network: small, or that of the QM1B paper."""
    ipu: str = "bow-pod16"
    """The system: bow-pod4, bow-pod16, bow-pod64, bow-pod256, the same of gc200, or one chip."""
    data: Path | None = None
    """Rows whose sizes decide the packs: a folder of qm1b generate, .parquet or .extxyz(.gz); if
    not given, the sample of molecules that comes with qm1b."""
    pack_molecules: int = 32
    """Mean number of molecules per pack."""
    accumulation: int = 1
    """Packs per replica and update; with --inference, packs of a call."""
    precision: Literal["float32", "float16"] = "float32"
    """Precision of the layers."""
    layout: PodLayout = field(default_factory=PodLayout)
    json: JsonTarget = None
    """Print the figures as JSON instead of the table, or write them to FILE.json."""
    html: Path | None = None
    """Write a web page with charts of one update to this file."""

    def __call__(self) -> int:
        """Run the command; returns the exit code.

        Raises:
            UserError: an option or the data cannot be used.
        """
        from pyscf_ipu.ipu import priced_target
        from schnet.network.config import PRESETS, Optimizer, Schedule, readout_for
        from schnet.samples.targets import target_of
        from schnet.training.costs.training_price import packs_of, price_training

        for name in ("pack_molecules", "accumulation"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name.replace('_', '-')} {getattr(self, name)}: give 1 or more")
        check_folders((self.html, self.json))
        system = priced_target(self.ipu)
        model = readout_for(PRESETS[self.preset], target_of("gap"))
        packs = packs_of(self._sizes(), model, self.pack_molecules)
        schedule = Schedule(accumulation=self.accumulation, precision=self.precision)
        price = price_training(
            model, Optimizer(), packs, target=system, schedule=schedule, layout=self.layout
        )
        if self.html:
            with writing(self.html):
                price.profile.to_html(self.html)
        if self.json:
            put_json(json.dumps(price.to_dict(), indent=1), self.json)
        if self.json is None or self.json != Path("-"):
            print(as_text(price, self.preset))
        return 0

    def _sizes(self) -> "np.ndarray":
        """Numbers of atoms of the molecules."""
        import numpy as np

        if self.data is not None:
            from schnet.sources import open_source

            parts = open_source(self.data, None).parts()
            return np.concatenate([np.zeros(0, np.int64), *(x.sizes for x in parts)])
        from rdkit import Chem

        from qm1b.commands.generate import SAMPLE

        lines = [line.split() for line in SAMPLE.read_text().splitlines()]
        graphs = [Chem.MolFromSmiles(words[0]) for words in lines if words]
        return np.array([Chem.AddHs(m).GetNumAtoms() for m in graphs if m is not None], np.int64)


def as_text(price: "TrainingPrice", name: str) -> str:
    """The figures as a table."""
    from pyscf_ipu.base.terminal import text_table
    from pyscf_ipu.ipu.report.summary import pipeline_lines

    profile, rate, hours = price.profile, price.molecules_per_second, price.hours_per_billion
    memory, total, what = profile.memory, profile.cycles.low, "update" if price.trains else "call"
    low, _, high = profile.host_seconds
    rows = [
        (f"molecules of {'an update' if price.trains else 'a call'}", f"{price.molecules:,.0f}"),
        ("molecules/s", f"{rate.low:,.0f} to {rate.high:,.0f}"),
        ("hours per billion examples", f"{hours.low:,.2f} to {hours.high:,.2f}"),
    ]
    for part, cycles in price.cycles.items():
        share = cycles.low / total if total else 0.0
        rows.append((part, f"{cycles.low:,.0f} cycles ({100 * share:.1f} %)"))
    if price.idle_ipus:
        text = f"{price.idle_ipus}, too few for one more replica of {profile.num_ipus}"
        rows.append(("idle IPUs", text))
    low_time, high_time = (1e3 * x for x in (price.device_seconds.low, price.device_seconds.high))
    rows += [
        ("packs from the host", f"{1e3 * low:.3f} to {1e3 * high:.3f} ms, beside the {what}"),
        (what, f"{low_time:.3f} to {high_time:.3f} ms"),
        ("fullest tile", f"{memory.max_tile_bytes:,} of {memory.limit_bytes:,} bytes"),
    ]
    if memory.streaming_bytes:
        rows.append(("streaming memory", f"{memory.streaming_bytes:,} bytes of a machine"))
    if not memory.fits:
        rows.append(("does not fit", f"{len(memory.overflowing)} tiles have too little memory"))
    if profile.unknown_ops:
        rows.append(("not priced", ", ".join(profile.unknown_ops)))
    lines = [f"{name} on {profile.target}, {profile.replicas} replicas", *text_table(rows, "< <")]
    return "\n".join([*lines, *pipeline_lines(profile)])
