"""Code blocks of the documentation, what they print, and how to run them.

A `text` block directly below code shows what the code prints (`notebooks/checks/printed.py` says
how they are compared).  A comment above a block says that the suite does not run it:

    <!-- long -->                  only with `-m long`
    <!-- not run: needs a GPU -->  never; `tests/test_pages.py` limits how many there are
"""

import io
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt  # comes with rich
from printed import difference

from pyscf_ipu.commands.cli import main as pyscf_ipu_main
from pyscf_ipu.nanodft.command import main as nanodft_main
from qm1b.cli import main as qm1b_main
from schnet.cli import main as schnet_main

ROOT = Path(__file__).parents[1]
COMMANDS = {
    "pyscf-ipu": pyscf_ipu_main,
    "qm1b": qm1b_main,
    "schnet": schnet_main,
    "nanodft": nanodft_main,
}
LONG, NOT_RUN = "<!-- long -->", "<!-- not run: "


@dataclass
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    code: str
    mark: str = ""
    """The comment above it."""
    shown: str | None = None
    """What it prints according to the page."""

    @property
    def name(self) -> str:
        """Where it stands."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def run(self, namespace: dict) -> None:
        """Run it in the current folder, and compare what it prints with what the page shows."""
        with redirect_stdout(io.StringIO()) as printed, redirect_stderr(printed):
            if self.language == "python":
                lines = "\n" * self.line + self.code  # so that a traceback names the page's lines
                exec(compile(lines, str(self.page), "exec"), namespace)
            else:
                for line in self.code.replace("\\\n", " ").splitlines():
                    run_line(line)
        if self.shown is not None and (fault := difference(self.shown, printed.getvalue())):
            raise AssertionError(f"{self.name}: {fault}\nall that it prints:\n{printed.getvalue()}")


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, each with its mark and its output."""
    every, before = [], None
    for token in MarkdownIt().parse(page.read_text()):
        if token.type == "fence":
            block = Block(page, token.map[0] + 1, token.info, token.content)
            if before is not None and before.type == "html_block":
                block.mark = before.content.strip()
            if token.info == "text" and before is not None and before.type == "fence":
                every[-1].shown = token.content
            every.append(block)
        before = token
    return every


def run_line(line: str) -> None:
    """Run a line of a `sh` block: our commands in this process, all else by bash.

    `./generate.sh` is `qm1b generate` once it has made its environment.
    """
    words = shlex.split(line, comments=True)
    if not words:
        return
    name = words[0].removeprefix(".venv/bin/")
    if name == "./generate.sh":
        name, words = "qm1b", ["qm1b", "generate", *words[1:]]
    if name in COMMANDS:
        code = COMMANDS[name](words[1:])
        assert code == 0, f"{line} ended with {code}"
        return
    line = line.replace("CHECKOUT", str(ROOT))
    done = subprocess.run(["bash", "-c", line], check=True, capture_output=True, text=True)
    sys.stdout.write(done.stdout)
