"""A Profile as one HTML file that needs neither a network nor a library.

The page is `report/report.html`; its style and scripts stand in it, and the profile as JSON.
The program goes into the page as a tree, never unrolled, with equal steps written once: a loop of
10^6 runs is as small as a loop of two, and the timeline opens what is wider than a pixel.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from pyscf_ipu.ipu.diff import compare
from pyscf_ipu.ipu.profile import Profile, Program, Repeat, Step
from pyscf_ipu.ipu.totals import program_counts, title, vertex_totals

# In the order in which they stand in the page: each uses only those before it.
_SCRIPTS = ("page", "tables", "charts", "program", "timeline", "view", "report")


def to_html(profile: Profile, path: str | Path, other: Profile | None = None) -> None:
    """Write the report to `path`.

    other  a second profile: the report then begins with a comparison, `profile` being A.
    """
    Path(path).write_text(page(profile, other), encoding="utf-8")


def page(profile: Profile, other: Profile | None = None) -> str:
    """The report as text of one HTML file.

    Raises ValueError if a number of the profile is infinite or not a number.
    """
    folder = files("pyscf_ipu").joinpath("ipu", "report")

    def read(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    return Template(read("report.html")).substitute(
        title=escape(f"IPU profile: {title(profile)}"),
        style=read("report.css"),
        script="\n".join(read(f"{name}.js") for name in _SCRIPTS),
        data=_script_safe(json.dumps(_payload(profile, other), allow_nan=False)),
    )


def _script_safe(text: str) -> str:
    """JSON that no HTML parser takes for markup: "</script>" may stand in a name."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _payload(profile: Profile, other: Profile | None) -> dict[str, Any]:
    found = profile.to_dict()
    del found["program"]
    return {
        "title": title(profile),
        "profile": found,
        "program": encode_program(profile.program),
        "counts": {k: asdict(v) for k, v in program_counts(profile).items()},
        "vertices": [asdict(v) for v in vertex_totals(profile)],
        "categories": {k: v.tolist() for k, v in profile.memory.by_category.items()},
        "comparison": None if other is None else asdict(compare(profile, other)),
    }


def encode_program(program: Program) -> dict[str, Any]:
    """The tree of the program with every distinct step once.

    steps  distinct steps, as objects.
    nodes  for a step its index in `steps`; for a loop [count, name, nodes].
    """
    index: dict[Step, int] = {}

    def encode(nodes: Program) -> list[Any]:
        return [
            [x.count, x.name, encode(x.body)]
            if isinstance(x, Repeat)
            else index.setdefault(x, len(index))
            for x in nodes
        ]

    nodes = encode(program)
    return {"steps": [asdict(step) for step in index], "nodes": nodes}
