"""A Profile as one HTML file that needs neither a network nor a library.

The page is `page/report.html`; it contains its style, its scripts, and the profile as JSON.
The program goes into the page as a tree, never unrolled, with equal steps written once.  So a loop
of 10^6 runs is as small as a loop of two.  The timeline opens what is wider than a pixel.
"""

import json
import re
from dataclasses import asdict
from graphlib import TopologicalSorter
from html import escape
from importlib.resources import files
from string import Template

from pyscf_ipu.ipu.findings.figures import figures
from pyscf_ipu.ipu.findings.totals import program_counts, title, vertex_totals
from pyscf_ipu.ipu.findings.words import findings
from pyscf_ipu.ipu.profile.data import ProfileData, Program, Repeat, Step
from pyscf_ipu.ipu.report.diff import compare

_FOLDER = files("pyscf_ipu").joinpath("ipu", "report", "page")
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:function|class|const) (\w+))", re.MULTILINE)


def page(profile: ProfileData, other: ProfileData | None = None) -> str:
    """The report as text of one HTML file, of one profile or beside another (`Profile.to_html`).

    Raises:
        ValueError: A number of the profile is infinite or not a number.
    """
    return Template(_read("report.html")).substitute(
        title=escape(f"IPU profile: {title(profile)}"),
        style=_read("report.css"),
        script=_script(),
        data=_script_safe(json.dumps(_payload(profile, other), allow_nan=False)),
    )


def _read(name: str) -> str:
    return _FOLDER.joinpath(name).read_text(encoding="utf-8")


def _script() -> str:
    """The modules of the page as one script, each behind those that it imports.

    A module becomes a function that is called once and returns what the module exports; an import
    takes it from there.  No parser is needed, because the modules keep to two forms, both at the
    beginning of a line: `import { a, b } from "./name.js";`, and `export` before a function, a
    class or a const.
    """
    names = sorted(f.name for f in _FOLDER.iterdir() if f.name.endswith(".js"))
    texts = {name.removesuffix(".js"): _read(name) for name in names}
    imports = {name: [m[1] for m in _IMPORT.findall(text)] for name, text in texts.items()}
    order = TopologicalSorter(imports).static_order()
    return "\n".join(_scoped(name, texts[name]) for name in order)


def _scoped(name: str, text: str) -> str:
    exported = ", ".join(_EXPORT.findall(text))
    body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = modules.\2;", text))
    return f"modules.{name} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"


def _script_safe(text: str) -> str:
    """JSON without characters of HTML markup: a name may contain "</script>"."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _payload(profile: ProfileData, other: ProfileData | None) -> dict[str, object]:
    return {
        "title": title(profile),
        "profile": figures(profile),
        "program": encode_program(profile.program),
        "counts": {k: asdict(v) for k, v in program_counts(profile).items()},
        "vertices": [asdict(v) for v in vertex_totals(profile)],
        "categories": {k: v.tolist() for k, v in profile.memory.by_category.items()},
        "findings": list(findings(profile)),
        "comparison": None if other is None else asdict(compare(profile, other)),
    }


def encode_program(program: Program) -> dict[str, object]:
    """The tree of the program with every distinct step once.

    Returns:
        "steps", the distinct steps as objects, and "nodes": for a step its index in "steps", for a
        loop [count, name, nodes].
    """
    index: dict[Step, int] = {}

    def encode(nodes: Program) -> list[object]:
        return [
            [x.count, x.name, encode(x.body)]
            if isinstance(x, Repeat)
            else index.setdefault(x, len(index))
            for x in nodes
        ]

    nodes = encode(program)
    return {"steps": [asdict(step) for step in index], "nodes": nodes}
