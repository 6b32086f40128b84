"""The code of README and docs is run, and prints what the pages say."""

import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runs import fake_run, give_free_atoms
from page_blocks import LONG, NOT_RUN, ROOT, blocks

from qm1b.cli import main as qm1b_main
from qm1b.settings import PRESETS
from schnet.cli import main as schnet_main

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
SHELLS = ("README.md", "tutorial.md", "library.md", "nanodft.md", "exports.md")
"""Pages whose shell blocks run, too."""

MOST_NOT_RUN = 6
"""Blocks that cannot run here: this may only fall."""


def runnable(page):
    """Its blocks that may run."""
    languages = ("python", "sh") if page.name in SHELLS else ("python",)
    return [
        block
        for block in blocks(page)
        if block.language in languages and not block.mark.startswith(NOT_RUN)
    ]


AT_LENGTH = ("library.md", "levels.md", "simulated-ipu.md", "tutorial.md")
"""Pages whose code takes ten seconds to half a minute: only the long test runs them."""


def with_blocks(long):
    """Pages with something to run; for the long test those with a long block, or at length."""
    chosen = [page for page in PAGES if runnable(page) and page.name not in AT_LENGTH]
    if long:
        marked = {p for p in PAGES if any(b.mark == LONG for b in runnable(p))}
        chosen = [page for page in PAGES if page.name in AT_LENGTH or page in marked]
    return pytest.mark.parametrize("page", chosen, ids=lambda page: page.name)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """What readers have: molecules, a dataset and its exports."""
    folder = tmp_path_factory.mktemp("prepared")
    lines = "CO 7\nCCO\nC=O\nO\nCC\nCCC\nCN\nCCN\nCOC\nCC=O\nNC=O\nC#N\n"
    level = replace(PRESETS["qm1b"], history=True)
    out, _ = fake_run(folder, lines, forces=True, level=level)
    (folder / "data").mkdir()
    give_free_atoms(out).rename(folder / "data" / "mine")
    (folder / "my.smi").write_text("CO\nCCO\nC=O\n")
    (folder / "input.smi").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert qm1b_main(["export", "data/mine", "mine.parquet"]) == 0
        assert qm1b_main(["export", "data/mine", "out/qm1b", "--parts", "1"]) == 0
    return folder


@pytest.fixture
def trained(folder):
    """Two networks in the folder."""
    small = "--width 8 --filters 8 --interactions 1 --gaussians 8 --max-epochs 1 --quiet"
    for target, name in (("gap", "gap"), ("forces+energy", "field")):
        given = ["--data", "data/mine", "--target", target, "--out", f"runs/{name}"]
        assert schnet_main(["train", *given, *small.split()]) == 0


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch):
    """A copy of the prepared folder to work in, with the environment activated."""
    for path in prepared.rglob("*"):
        copy = tmp_path / path.relative_to(prepared)
        copy.mkdir() if path.is_dir() else copy.write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    return tmp_path


@with_blocks(long=False)
def test_the_code_of_a_page(page, folder):
    namespace = {}
    for block in runnable(page):
        if block.mark != LONG:
            block.run(namespace)


@pytest.mark.long
@with_blocks(long=True)
def test_all_code_of_a_page(page, folder, trained):
    for path in re.findall(r"--out ([\w/]+)", "".join(block.code for block in runnable(page))):
        shutil.rmtree(folder / path, ignore_errors=True)  # the page makes its own
    namespace = {}
    for block in runnable(page):
        block.run(namespace)


def test_few_blocks_are_not_run():
    every = [block for page in PAGES for block in blocks(page)]
    assert sum(block.mark.startswith(NOT_RUN) for block in every) <= MOST_NOT_RUN
    for block in every:
        assert block.mark == LONG or block.mark.startswith(NOT_RUN) or not block.mark, block.name


def test_an_output_stands_below_code():
    for page in PAGES:
        every = blocks(page)
        for before, block in zip([None, *every], every, strict=False):
            if block.language == "text":
                assert before is not None, block.name
                assert before.shown == block.code, block.name
                assert before in runnable(page), f"{block.name}: nobody runs the code above it"
