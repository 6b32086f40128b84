"""Links and flags of the pages, and how far a reader of the README has to go.

`.ci/run` builds the site.
"""

import re
from collections import deque
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt  # comes with rich
from page_flags import FLAG, Use, alone, commands_in, flags_of, uses

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "notebooks" / "README.md",
    *sorted(
        path for path in ROOT.glob("docs/**/*.md") if "repository" not in path.parts
    ),  # those are copies, made by Sphinx
]
CLICKS = 3
TASKS = {
    "compute one molecule": "pi.rks(",
    "make a dataset from a file": "qm1b generate",
    "train SchNet": "schnet train",
    "profile on the IPU": "pyscf-ipu profile",
}


@dataclass
class Page:
    """What a reader of a Markdown file can click, and what stands in it."""

    links: list[tuple[str, str]] = field(default_factory=list)  # text, target
    code: dict[str, str] = field(default_factory=lambda: {"": ""})  # anchor -> code below it


@cache
def read(path):
    page, tokens, here = Page(), MarkdownIt().enable("table").parse(path.read_text()), ""
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "fence":
            page.code[here] += token.content
        if token.type != "inline":
            continue
        if before.type == "heading_open":
            here = anchor(token, page.code)
            page.code[here] = ""
        page.links += links(token.children)
    return page


def anchor(heading, taken):
    """The name that code hosts give to a heading."""
    text = "".join(part.content for part in heading.children).lower()
    name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
    return next(n for n in (name, *(f"{name}-{i}" for i in range(1, 99))) if n not in taken)


def links(parts):
    found, opened = [], None
    for part in parts:
        if part.type == "link_open":
            opened = len(found)
            found.append(["", part.attrs["href"]])
        elif part.type == "link_close":
            opened = None
        elif part.type == "image":
            found.append([part.content, part.attrs["src"]])
        elif opened is not None:
            found[opened][0] += part.content or " "
    return [tuple(link) for link in found]


def aim(path, target):
    """The file and the anchor that a relative link means."""
    file, _, name = unquote(target).partition("#")
    return (path.parent / file).resolve() if file else path, name


def problems(path):
    """What is wrong with the links of a page, a sentence each."""
    found = []
    for _, target in read(path).links:
        url = urlsplit(target)
        if url.scheme:
            good = url.scheme in ("http", "https") and "." in url.netloc and " " not in target
            if not good or (url.netloc.endswith("doi.org") and not url.path.startswith("/10.")):
                found.append(f"{target} is no address")
            continue
        file, name = aim(path, target)
        if not file.exists():
            found.append(f"{target}: there is no such file")
        elif name and (file.suffix != ".md" or name not in read(file).code):
            found.append(f"{target}: there is no such heading")
    return found


def clicks(start):
    """How many clicks away every page is."""
    far, queue = {start: 0}, deque([start])
    while queue:
        path = queue.popleft()
        for _, target in read(path).links:
            file, _ = aim(path, target)
            if not urlsplit(target).scheme and file.suffix == ".md" and file not in far:
                far[file] = far[path] + 1
                queue.append(file)
    return far


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    assert not problems(path)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[x](there.md) [y](there.md#a-heading-with-code) [z](#top) ![p](there.md)\n\n# Top", 0),
        ("[x](https://doi.org/10.1063/1.5019779) <https://arxiv.org>", 0),
        ("`[x](nowhere.md)`\n\n```\n[x](nowhere.md)\n```", 0),
        ("[x](nowhere.md)", 1),
        ("![x](nowhere.png)", 1),
        ("| a |\n|---|\n| [x](nowhere.md) |", 1),
        ("[x](there.md#nowhere) [y](#nowhere)", 2),
        ("[x](there.md#again) [y](there.md#again-1) [z](there.md#again-2)", 1),
        ("[x](https://doi.org/1063) [y](htp://arxiv.org/) [z](https://nowhere)", 3),
    ],
)
def test_a_broken_link_is_noticed(tmp_path, text, found):
    (tmp_path / "there.md").write_text("# A *heading* with `code`?\n# Again\n# Again\n")
    page = tmp_path / "page.md"
    page.write_text(text)
    assert len(problems(page)) == found


@pytest.mark.parametrize(("task", "command"), TASKS.items())
def test_a_task_is_few_clicks_from_the_readme(task, command):
    near = [path for path, n in clicks(README).items() if 0 < n <= CLICKS]
    assert any(command in code for path in near for code in read(path).code.values())


@pytest.mark.parametrize(("task", "command"), TASKS.items())
def test_the_readme_has_a_link_that_says_the_task(task, command):
    """It lands where the command stands."""
    targets = [t for text, t in read(README).links if task.lower() in text.lower()]
    assert targets
    for target in targets:
        file, name = aim(README, target)
        assert command in read(file).code[name]


def test_the_index_leads_to_every_page():
    index = ROOT / "docs" / "index.md"
    there = {aim(index, target)[0] for _, target in read(index).links}
    assert there >= set(ROOT.glob("docs/*.md")) - {index}
    assert clicks(README)[index] == 1


WRITTEN = [*PAGES, *ROOT.glob("notebooks/*.py")]
"""Where flags stand; of a notebook, the whole script is read as one text."""


@cache
def every_flag():
    """All flags of the commands and scripts that are named somewhere."""
    names = {name for path in PAGES for name in commands_in(path.read_text())}
    return frozenset().union(*map(flags_of, names)) | {"--E0s"}  # of MACE


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_flag_exists(path):
    """With its command it is a flag of that one; by itself, of one that is named somewhere.

    Our flags have hyphens: those with underscores are of other programs.
    """
    text = path.read_text()
    for use in uses(text) if path.suffix == ".md" else map(alone, set(FLAG.findall(text))):
        known = flags_of(use.command) if use.command else every_flag()
        assert use.flag in known or (not use.command and "_" in use.flag), use


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("`pyscf-ipu rks water --ipu bow --level.jk ri`", Use("--level.jk", "pyscf-ipu rks")),
        (
            "```sh\nsrun .venv/bin/qm1b generate a.smi --jk-fit\n```",
            Use("--jk-fit", "qm1b generate"),
        ),
        ("`./generate.sh --audits 3`", Use("--audits", "qm1b generate")),
        (
            "`taskset -c 0 python -m benchmarks.engine.stages --jj`",
            Use("--jj", "benchmarks.engine.stages"),
        ),
        ("`nanoDFT --mol-string benzene`", Use("--mol-string", "nanodft")),
        ("Give `--nothing`.", Use("--nothing", "")),
        ("`qm1b info data | head --lines 3`", None),
        ("`pip install --editable .`", None),
        ("`qm1b generate --jk ri # --nothing`", None),
    ],
)
def test_a_wrong_flag_is_noticed(text, use):
    wrong = [
        u for u in uses(text) if u.flag not in (flags_of(u.command) if u.command else every_flag())
    ]
    assert wrong == ([use] if use else [])


@pytest.mark.parametrize("command", ["qm1b generated", "schnet learn", "pyscf-ipu rs"])
def test_a_wrong_command_is_noticed(command):
    with pytest.raises(KeyError):
        flags_of(command)
