"""The result of `simulate`: the data, and the reports that present it."""

import json
from dataclasses import replace
from pathlib import Path

from pyscf_ipu.base.host.temporaries import write_text
from pyscf_ipu.ipu.findings.figures import to_dict
from pyscf_ipu.ipu.findings.pipelines import pipeline, with_stash
from pyscf_ipu.ipu.findings.rates import rates
from pyscf_ipu.ipu.profile.data import MicroBatches, ProfileData
from pyscf_ipu.ipu.report.html import page
from pyscf_ipu.ipu.report.summary import summary
from pyscf_ipu.ipu.report.trace import trace


class Profile(ProfileData):
    """The priced run of one program, with its reports."""

    summary = summary
    to_dict = to_dict
    rates = rates
    pipeline = pipeline

    def to_json(self, path: str | Path | None = None) -> str:
        """`to_dict` as text; written to `path` if one is given."""
        text = json.dumps(self.to_dict())
        if path is not None:
            write_text(path, text)
        return text

    def scheduled(self, micro_batches: MicroBatches) -> "Profile":
        """The profile with other micro-batches, whose activations are in its memory."""
        schedule = pipeline(self, micro_batches)
        if schedule is None:
            return self
        return replace(self, micro_batches=micro_batches, memory=with_stash(self, schedule))

    def to_html(self, path: str | Path, other: ProfileData | None = None) -> None:
        """Write a report for the browser, as one file.

        Args:
            path: The file.
            other: A second profile. The report then begins with a comparison, in which it is B.
        """
        write_text(path, page(self, other))

    def to_trace(self, path: str | Path, max_events: int = 200_000) -> None:
        """Write a trace for Perfetto.

        Args:
            path: The file.
            max_events: The most steps and loops in it. A loop for which there is no room becomes
                one event with args {"repeats": n}. If that is not enough, one last event with args
                {"steps": n} stands for the end of the program.

        Raises:
            ValueError: `max_events` is less than 1.
        """
        text = json.dumps(trace(self, max_events), separators=(",", ":"), allow_nan=False)
        write_text(path, text)
